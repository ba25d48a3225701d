// Maths, set as MathML; as it was written until that is there, and for good where it can't be.
import { html, useEffect, useRef } from "/page/vendored/preact-htm.js";
import { slowly } from "/page/slow.js";

const MATHML = "http://www.w3.org/1998/Math/MathML";
const ELEMENTS = new Set(
  "math mrow mi mn mo mtext ms mspace mfrac msqrt mroot msub msup msubsup munder mover munderover mmultiscripts mprescripts mtable mtr mtd mpadded mphantom mstyle".split(" "),
);
const ATTRIBUTES = new Set(
  "display displaystyle scriptlevel mathvariant stretchy fence separator form symmetric movablelimits accent accentunder linethickness lspace rspace width height depth voffset minsize maxsize columnalign".split(" "),
);

function element(tree) {
  if (typeof tree === "string") return document.createTextNode(tree);
  const made = document.createElementNS(MATHML, ELEMENTS.has(tree.kind) ? tree.kind : "mrow");
  for (const [name, value] of Object.entries(tree.attributes ?? {})) if (ATTRIBUTES.has(name)) made.setAttribute(name, value);
  made.append(...tree.parts.map(element));
  return made;
}

export function Maths({ source, text, display, growing }) {
  const box = useRef(null);
  useEffect(() => {
    if (growing) return;
    let over = false;
    slowly({ text, display }).then((tree) => { if (tree && !over) box.current.replaceChildren(element(tree)); });
    return () => { over = true; };
  }, [text, display, growing]);
  // Another source is another element: what was set isn't Preact's to change.
  return html`<span key=${source} ref=${box} class=${`maths${display ? " display" : ""}`} title=${source} tabindex=${display ? 0 : undefined}>${source}</span>`;
}
