// How to take the conversation along: a link where the platform has such links, also as a QR code for a phone's camera, else a
// code to type.
import { generate } from "/page/vendored/lean-qr.js";
import { html } from "/page/vendored/preact-htm.js";

const EDGE = 4; // The empty frame that cameras want, in modules.

function Qr({ text, label }) {
  const code = generate(text), side = code.size + 2 * EDGE, dark = [];
  for (let y = 0; y < code.size; y++) for (let x = 0; x < code.size; x++) if (code.get(x, y)) dark.push(`M${x + EDGE} ${y + EDGE}h1v1h-1z`);
  return html`<svg class="qr" viewBox=${`0 0 ${side} ${side}`} role="img" aria-label=${label} shape-rendering="crispEdges"><path d=${dark.join("")} /></svg>`;
}

export function Invitation({ code, links, typed }) {
  return html`<div class="notice lines invitation">
    ${Object.entries(links).map(([place, link]) => html`<${Qr} text=${link} label=${`QR code for ${place}`} />
      <p>To take this conversation along to ${place}, scan this or open <a href=${link} target="_blank" rel="noopener noreferrer">${link}</a></p>`)}
    ${typed.length > 0 && html`<p>To take it along to ${typed.join(", ")}, send /link ${code} to me in a private chat there.</p>`}
    <p>Whoever uses that becomes you, within ten minutes: show it to nobody.</p>
  </div>`;
}
