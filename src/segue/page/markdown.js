// The agent's Markdown as elements, read by markdown-it. What somebody wrote is never taken for HTML: tokens become
// elements one by one, and a link leads only where http, https and mailto lead. A picture from elsewhere is a link to it:
// loading it would tell its server who reads this, and when.
import { Code } from "/page/code.js";
import MarkdownIt from "/page/vendored/markdown-it.js";
import { Maths } from "/page/maths.js";
import { h, html } from "/page/vendored/preact-htm.js";

const LONGEST = 100_000; // Characters; a longer text is shown as it was written.
const DEEPEST = 40;
const ELEMENTS = new Set(["p", "ul", "ol", "li", "blockquote", "thead", "tbody", "tr", "th", "td", "strong", "em", "s"]);
const LEADS = /^(https?:|mailto:)/i, PICTURE = /^data:image\/(png|jpeg|gif|webp);base64,/i, TASK = /^\[([ x])\]\s+/i, HOST = /^https?:\/\/(?:[^/?#]*@)?([^/?#]+)/i;
const SIDES = { "text-align:right": "right", "text-align:center": "middle" };
const CLOSES = { "$$": "$$", $: "$", "\\(": "\\)", "\\[": "\\]" };

const reader = new MarkdownIt({ linkify: true });
reader.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
reader.validateLink = (to) => LEADS.test(to) || PICTURE.test(to);
reader.inline.ruler.before("escape", "maths", maths);
reader.block.ruler.before("fence", "maths", mathsBlock, { alt: ["paragraph", "reference", "blockquote", "list"] });

// Maths within a line: what stands between its marks isn't Markdown.
function maths(state, silent) {
  const { src, pos } = state, open = Object.keys(CLOSES).find((mark) => src.startsWith(mark, pos));
  if (!open || state.unclosed?.has(open)) return false;
  const begin = pos + open.length;
  let end = src.indexOf(CLOSES[open], begin);
  while (open === "$" && end > 0 && src[end - 1] === "\\") end = src.indexOf("$", end + 1);
  if (end < 0) (state.unclosed ??= new Set()).add(open); // Looked for once, however often it is opened.
  const after = end + open.length;
  if (end <= begin || after > state.posMax || (open === "$" && isMoney(src, pos, end))) return false;
  if (!silent) Object.assign(state.push("maths", "", 0), { content: src.slice(pos, after), markup: open });
  state.pos = after;
  return true;
}

// Dollars are money, or a shell's, unless they stand around something as brackets do.
function isMoney(src, open, close) {
  return /^[A-Z_]{2,}\W?$/.test(src.slice(open + 1, close)) || /\s/.test(src[open + 1] + src[close - 1]) || /\w/.test((src[open - 1] ?? " ") + (src[close + 1] ?? " "));
}

// Maths on lines of its own, which goes on like fenced code until it is closed.
function mathsBlock(state, first, end, silent) {
  const start = state.bMarks[first] + state.tShift[first], open = state.src.slice(start, start + 2), close = CLOSES[open];
  if (!["$$", "\\["].includes(open) || state.sCount[first] - state.blkIndent > 3) return false;
  const line = (n) => state.getLines(n, n + 1, 0, false).trim();
  const begun = line(first);
  let closed = begun.length > 4 && begun.indexOf(close, 2) === begun.length - 2, after = first + 1;
  if (!closed && begun !== open) return false;
  if (silent) return true;
  const holds = (n) => n < end && (state.isEmpty(n) || state.sCount[n] >= state.blkIndent);
  while (!closed && holds(after)) closed = line(after++) === close;
  state.line = after;
  Object.assign(state.push("maths", "", 0), { content: state.getLines(first, after, state.blkIndent, false).trim(), markup: open, block: true });
  return true;
}

// Tokens as elements; an opening token waits on the stack until all that it holds is there. What is nested deeper than
// anybody reads stays, without its marks.
function elements(tokens, growing) {
  const stack = [{ inside: [] }];
  tokens.forEach((token, n) => {
    const { inside } = stack.at(-1);
    if (token.nesting > 0) stack.push(stack.length > DEEPEST ? { inside } : { token, inside: [] });
    else if (token.nesting === 0) inside.push(leaf(token, growing, tokens[n - 2]?.type === "list_item_open"));
    else {
      const closed = stack.pop();
      if (closed.token) stack.at(-1).inside.push(whole(closed));
    }
  });
  return stack[0].inside;
}

const link = (to, inside) => html`<a href=${to} target="_blank" rel="noopener noreferrer">${inside}</a>`;

function whole({ token, inside }) {
  const { tag, hidden } = token;
  if (hidden) return inside;
  if (tag === "a") return LEADS.test(token.attrGet("href")) ? link(token.attrGet("href"), inside) : inside;
  if (tag === "table") return html`<div class="table" tabindex="0"><table>${inside}</table></div>`;
  if (token.type === "heading_open") return h(`h${Math.min(6, Number(tag[1]) + 1)}`, null, inside);
  return ELEMENTS.has(tag) ? h(tag, { start: token.attrGet("start") ?? undefined, class: SIDES[token.attrGet("style")] }, inside) : inside;
}

function leaf(token, growing, isItem) {
  const { type, content } = token;
  if (type === "inline") {
    const [first] = token.children, task = isItem && first?.type === "text" && TASK.exec(first.content);
    if (!task) return elements(token.children, growing);
    first.content = first.content.slice(task[0].length);
    const done = task[1] !== " ";
    return [html`<input type="checkbox" disabled checked=${done} aria-label=${done ? "Done" : "To do"} />`, elements(token.children, growing)];
  }
  if (type === "fence" || type === "code_block")
    return html`<${Code} text=${content.replace(/\n$/, "")} language=${/^[\w#+.-]*/.exec(token.info)[0]} growing=${growing} />`;
  if (type === "code_inline") return html`<code>${content}</code>`;
  if (type === "maths") {
    const { length } = token.markup, closed = content.length > 2 * length && content.endsWith(CLOSES[token.markup]);
    return html`<${Maths} source=${content} text=${content.slice(length, closed ? -length : undefined)} display=${token.block} growing=${growing} />`;
  }
  if (type === "image") return picture(token.attrGet("src"), content);
  if (type === "hr") return html`<hr />`;
  return type === "softbreak" || type === "hardbreak" ? "\n" : content;
}

function picture(from, words) {
  if (PICTURE.test(from)) return html`<img src=${from} alt=${words} />`;
  return link(from, html`${words || "Picture"} <small>(${HOST.exec(from)?.[1] ?? from})</small>`);
}

export const markdown = (text, growing = false) =>
  text.length > LONGEST ? html`<p>${text}</p>` : elements(reader.parse(text, {}), growing);
