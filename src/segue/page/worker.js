// Finds the colours of code and sets maths, apart from the page, which ends it when it takes too long. It answers with plain trees
// of `{ kind, parts }`, or null.
const DEEPEST = 40;
const has = { hljs: "/page/vendored/highlight.js", temml: "/page/vendored/temml.js" };
const load = (library) => { if (!(library in self)) importScripts(has[library]); };

function tree(node, kind, own = () => ({}), depth = 0) {
  if (depth > DEEPEST) throw new RangeError("it is nested deeper than anybody reads");
  if (typeof node === "string") return node;
  if (node.text !== undefined) return node.text;
  return { kind: kind(node), ...own(node), parts: (node.children ?? []).map((part) => tree(part, kind, own, depth + 1)) };
}

function colours({ text, language }) {
  load("hljs");
  if (!hljs.getLanguage(language)) return null;
  return tree(hljs.highlight(text, { language, ignoreIllegals: true })._emitter.rootNode, ({ scope }) => scope?.split(".")[0]);
}

function maths({ text, display }) {
  load("temml");
  try {
    return tree(temml.__renderToMathMLTree(text, { displayMode: display, trust: false, throwOnError: true }), ({ type }) => type, ({ attributes }) => ({ attributes }));
  } catch {
    return null; // It is no maths, and stays as it was written.
  }
}

onmessage = ({ data }) => postMessage("language" in data ? colours(data) : maths(data));
