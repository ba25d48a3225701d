// The agent's markdown as elements: paragraphs, headings, lists, quotes, code, bold, italics and links. Nothing is ever
// read as HTML, and a link leads only where http, https and mailto lead. What is none of these stays as it was written.
import { html } from "/page/preact-htm.js";

const INLINE = new RegExp([
  "(`+)([^\\n]*?[^`\\n])\\1(?!`)",
  "\\*\\*(?=\\S)([^\\n]*?\\S)\\*\\*(?!\\*)",
  "(?<![\\w*])\\*(?=[^\\s*])([^*\\n]*?[^\\s*])\\*(?![\\w*])",
  "\\[([^\\]\\n]+)\\]\\(([^\\s()]+)\\)",
  "(\\bhttps?:\\/\\/[^\\s<>\"'`]*[^\\s<>\"'`.,;:!?)\\]*])",
].join("|"), "g");
const FENCE = /^ {0,3}(`{3,}|~{3,})/, ITEM = /^\s*(?:[-*+]|(\d{1,9})[.)])\s+(.*)/, HEADING = /^#{1,6}\s+(.*)/, QUOTE = /^>\s?/;
const DEEPEST = 8;

const link = (to, text) => html`<a href=${to} target="_blank" rel="noopener noreferrer">${text}</a>`;

function inline(text) {
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(INLINE)) {
    const [all, , code, bold, italic, label, to, address] = found;
    parts.push(text.slice(at, found.index));
    at = found.index + all.length;
    if (code) parts.push(html`<code>${code}</code>`);
    else if (bold) parts.push(html`<strong>${inline(bold)}</strong>`);
    else if (italic) parts.push(html`<em>${inline(italic)}</em>`);
    else if (address) parts.push(link(address, address));
    else parts.push(/^(https?:|mailto:)/i.test(to) ? link(to, label) : all);
  }
  return [...parts, text.slice(at)];
}

const begins = (line) => !line.trim() || [FENCE, ITEM, HEADING, QUOTE].some((kind) => kind.test(line));

export function markdown(text, depth = 0) {
  const blocks = [], lines = text.split("\n");
  let i = 0;
  const take = (goes) => {
    const taken = [];
    while (i < lines.length && goes(lines[i], taken)) taken.push(lines[i++]);
    return taken;
  };
  while (i < lines.length) {
    const line = lines[i], fence = line.match(FENCE), item = line.match(ITEM), heading = line.match(HEADING);
    if (!line.trim()) i++;
    else if (fence) {
      i++;
      const code = take((next) => !next.trim().startsWith(fence[1]));
      i++;
      blocks.push(html`<pre tabindex="0"><code>${code.join("\n")}</code></pre>`);
    } else if (heading) {
      i++;
      blocks.push(html`<h2>${inline(heading[1])}</h2>`);
    } else if (QUOTE.test(line) && depth < DEEPEST) {
      const quoted = take((next) => QUOTE.test(next)).map((next) => next.replace(QUOTE, ""));
      blocks.push(html`<blockquote>${markdown(quoted.join("\n"), depth + 1)}</blockquote>`);
    } else if (item) {
      const numbered = item[1] !== undefined;
      const same = (next) => { const other = next.match(ITEM); return other ? (other[1] !== undefined) === numbered : next.trim() && !begins(next); };
      const items = [];
      for (const next of take(same)) ITEM.test(next) ? items.push(next.match(ITEM)[2]) : items.push(`${items.pop()}\n${next.trim()}`);
      const shown = items.map((words) => html`<li>${inline(words)}</li>`);
      blocks.push(numbered ? html`<ol start=${item[1]}>${shown}</ol>` : html`<ul>${shown}</ul>`);
    } else blocks.push(html`<p>${inline(take((next, taken) => !taken.length || !begins(next)).join("\n"))}</p>`);
  }
  return blocks;
}
