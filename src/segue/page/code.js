// Code with its colours and a button that copies it.
import { html, useEffect, useState } from "/page/vendored/preact-htm.js";
import { slowly } from "/page/slow.js";

const shown = (part) => (typeof part === "string" ? part : html`<span class=${`is-${part.kind}`}>${part.parts.map(shown)}</span>`);

export function Code({ text, language, growing }) {
  const [colours, colour] = useState(null);
  useEffect(() => {
    if (!language || growing) return;
    let over = false;
    slowly({ text, language }).then((tree) => over || colour({ text, parts: tree?.parts }));
    return () => { over = true; };
  }, [text, language, growing]);
  return html`<div class="code"><pre tabindex="0"><code>${colours?.parts && colours.text === text ? colours.parts.map(shown) : text}</code></pre><${Copy} text=${text} /></div>`;
}

export function Copy({ text, label }) {
  const [done, tell] = useState(false);
  useEffect(() => { if (done) { const timer = setTimeout(() => tell(false), 1500); return () => clearTimeout(timer); } }, [done]);
  return html`<button type="button" class="copy" aria-label=${done ? undefined : label} onClick=${() => copy(text).then(tell)}>${done ? "Copied" : "Copy"}</button>`;
}

// The clipboard is there only over https or on this machine itself; elsewhere what is selected can be copied.
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true, () => false);
  const box = document.createElement("textarea");
  box.value = text;
  document.body.append(box);
  box.select();
  const done = document.execCommand("copy");
  box.remove();
  return done;
}
