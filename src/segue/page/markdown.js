// The agent's markdown as elements: paragraphs, headings, lists, tables, quotes, rules, code, bold, italics and links.
// Nothing is ever read as HTML, and a link leads only where http, https and mailto lead. What is none of these stays as
// it was written.
import { html } from "/page/preact-htm.js";

const INLINE = new RegExp([
  "(`+)([^\\n]*?[^`\\n])\\1(?!`)",
  "\\*\\*(?=\\S)([^\\n]*?\\S)\\*\\*(?!\\*)",
  "(?<![\\w*])\\*(?=[^\\s*])([^*\\n]*?[^\\s*])\\*(?![\\w*])",
  "\\[([^\\]\\n]+)\\]\\(([^\\s()]+)\\)",
  "(\\bhttps?:\\/\\/[^\\s<>\"'`]*[^\\s<>\"'`.,;:!?)\\]*])",
].join("|"), "g");
const FENCE = /^ {0,3}(`{3,}|~{3,})/, ITEM = /^(\s*)(?:[-*+]|(\d{1,9})[.)])\s+(.*)/, RULE = /^ {0,3}([-*_])(?: *\1){2,} *$/, HEADING = /^#{1,6}\s+(.*)/, QUOTE = /^>\s?/;
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

const begins = (line) => !line.trim() || [FENCE, ITEM, RULE, HEADING, QUOTE].some((kind) => kind.test(line));
const indent = (line) => line.search(/\S|$/);
const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
const divides = (cell) => /^:?-+:?$/.test(cell);

export function markdown(text, depth = 0) {
  const blocks = [], lines = text.split("\n");
  let i = 0;
  // A table is a row, a line of dashes with as many cells, and whatever rows follow.
  const table = () => lines[i].includes("|") && lines[i + 1]?.includes("|") && cells(lines[i + 1]).every(divides)
    && cells(lines[i]).length === cells(lines[i + 1]).length;
  // An item has the lines that are indented below it; a blank line ends the list unless it goes on after that.
  const list = ([, { length: base }, number]) => {
    const items = [], another = (line) => { const [all, before, n] = line.match(ITEM) ?? []; return all && before.length < base + 2 && !n === !number; };
    for (; i < lines.length; i++) {
      const line = lines[i], last = items.at(-1);
      if (!line.trim()) {
        while (i + 1 < lines.length && !lines[i + 1].trim()) i++;
        const next = lines[i + 1] ?? "";
        if (!another(next) && indent(next) < base + 2) break;
        last.inside.push("");
      } else if (another(line) && !RULE.test(line)) items.push({ words: [line.match(ITEM)[3]], inside: [] });
      else if (!begins(line) && !last.inside.length) last.words.push(line.trim());
      else if (indent(line) > base + 1) last.inside.push(line);
      else break;
    }
    return items;
  };
  const inside = (own) => {
    const least = Math.min(...own.filter((line) => line.trim()).map(indent));
    return own.some((line) => line.trim()) && (depth < DEEPEST ? markdown(own.map((line) => line.slice(least)).join("\n"), depth + 1) : inline(own.join("\n")));
  };
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
    } else if (RULE.test(line)) {
      i++;
      blocks.push(html`<hr />`);
    } else if (item) {
      const shown = list(item).map((one) => html`<li>${inline(one.words.join("\n"))}${inside(one.inside)}</li>`);
      blocks.push(item[2] ? html`<ol start=${item[2]}>${shown}</ol>` : html`<ul>${shown}</ul>`);
    } else if (table()) {
      const [head, sides, ...rows] = take((next, taken) => taken.length < 2 || (next.includes("|") && !begins(next))).map(cells);
      const side = (n) => (sides[n]?.endsWith(":") ? (sides[n].startsWith(":") ? "middle" : "right") : "left");
      blocks.push(html`<div class="table" tabindex="0"><table>
        <thead><tr>${head.map((cell, n) => html`<th class=${side(n)}>${inline(cell)}</th>`)}</tr></thead>
        <tbody>${rows.map((row) => html`<tr>${head.map((_, n) => html`<td class=${side(n)}>${inline(row[n] ?? "")}</td>`)}</tr>`)}</tbody></table></div>`);
    } else blocks.push(html`<p>${inline(take((next, taken) => !taken.length || !(begins(next) || table())).join("\n"))}</p>`);
  }
  return blocks;
}
