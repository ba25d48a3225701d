// Code with its colours and a button that copies it. Colours are found by a worker that is ended when it takes too long:
// patterns that read code can be made to run for minutes, and the page must not stand still for that.
import { html, useEffect, useState } from "/page/preact-htm.js";

const PATIENCE = 3000; // Milliseconds, the worker's own start among them.
const LONGEST = 100_000; // Characters
let worker = null, last = Promise.resolve();

const ask = (question) => new Promise((answered) => {
  worker ??= new Worker("/page/worker.js");
  const end = () => { worker.terminate(); worker = null; answered(null); };
  const timer = setTimeout(end, PATIENCE);
  worker.onmessage = ({ data }) => { clearTimeout(timer); answered(data); };
  worker.onerror = () => { clearTimeout(timer); end(); };
  worker.postMessage(question);
});

// One question at a time, so that the one that takes too long is known.
const coloured = (text, language) => (last = last.then(() => ask({ text, language })));

const shown = (part) => (typeof part === "string" ? part : html`<span class=${`is-${part.kind}`}>${part.parts.map(shown)}</span>`);

export function Code({ text, language, growing }) {
  const [colours, colour] = useState(null);
  useEffect(() => {
    if (!language || growing || text.length > LONGEST) return;
    let over = false;
    coloured(text, language).then((parts) => over || colour({ text, parts }));
    return () => { over = true; };
  }, [text, language, growing]);
  return html`<div class="code"><pre tabindex="0"><code>${colours?.parts && colours.text === text ? colours.parts.map(shown) : text}</code></pre><${Copy} text=${text} /></div>`;
}

function Copy({ text }) {
  const [done, tell] = useState(false);
  useEffect(() => { if (done) { const timer = setTimeout(() => tell(false), 1500); return () => clearTimeout(timer); } }, [done]);
  return html`<button type="button" class="copy" onClick=${() => copy(text).then(tell)}>${done ? "Copied" : "Copy"}</button>`;
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
