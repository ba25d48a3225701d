// What may take long is asked of a worker that is ended when it does: patterns that read code, and macros that write maths, can be
// made to run for minutes, and the page must not stand still for that.
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

// One question at a time, so that the one that takes too long is known. Null if there is no answer.
export const slowly = (question) => (last = last.then(() => (question.text.length > LONGEST ? null : ask(question))));
