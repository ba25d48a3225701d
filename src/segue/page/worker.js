// Finds the colours of code, apart from the page, which ends it when it takes too long.
importScripts("/page/highlight.js");

const DEEPEST = 40;

function plain({ scope, children }, depth = 0) {
  if (depth > DEEPEST) throw new RangeError("code that is nested deeper than anybody reads");
  return { kind: scope?.split(".")[0], parts: children.map((part) => (typeof part === "string" ? part : plain(part, depth + 1))) };
}

onmessage = ({ data: { text, language } }) => {
  const known = hljs.getLanguage(language);
  postMessage(known ? plain(hljs.highlight(text, { language, ignoreIllegals: true })._emitter.rootNode).parts : null);
};
