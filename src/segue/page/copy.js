// A button that copies a text.
import { html, useEffect, useState } from "/page/vendored/preact-htm.js";

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
