// Code with its colours and a button that copies it.
import { Copy } from "/page/copy.js";
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
