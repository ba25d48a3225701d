// The conversation: what was said, what waits, what grows, and what Segue itself says in between.
import { Copy } from "/page/code.js";
import { ask, STEPS } from "/page/frames.js";
import { Invitation } from "/page/invitation.js";
import { markdown } from "/page/markdown.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "/page/vendored/preact-htm.js";

const NEAR = 200; // Pixels from the top at which more is asked for.
const key = ({ tip }) => `${tip.session}/${tip.n}`;
const ADDRESS = /(https?:\/\/[^\s]*[^\s.,;:!?)])/;

// What Segue itself says; several lines are read from the left, like any list.
function Notice({ text, files, invitation }) {
  if (invitation) return html`<${Invitation} ...${invitation} />`;
  const words = text.split(ADDRESS).map((part, n) => (n % 2 ? html`<a href=${part} target="_blank" rel="noopener noreferrer">${part}</a>` : part));
  return html`<div class=${"notice" + (text.includes("\n") ? " lines" : "")}>${words}<${Files} files=${files} /></div>`;
}

// Files in the data folder can be had; of others the name is all there is.
function Files({ files = [] }) {
  return files.map(({ name, media, where }) => {
    if (!where.startsWith("files/")) return html`<p class="file">${name}</p>`;
    const to = `/${where}/${encodeURIComponent(name)}`;
    const picture = /^image\/(png|jpeg|gif|webp)$/.test(media) && /\.(png|jpe?g|gif|webp)$/i.test(name);
    return html`<a class="file" href=${to} download=${name}>${picture ? html`<img src=${to} alt=${name} loading="lazy" />` : name}</a>`;
  });
}

// Other people's words stand apart from one's own, with their names.
const side = ({ role, mine }) => (role === "person" && !mine ? "person other" : role);

function Said({ entry, state = "" }) {
  const shown = useMemo(() => (entry.role === "agent" ? markdown(entry.text, state === "grows") : entry.text), [entry.role, entry.text, state]);
  const name = entry.role === "agent" ? html`<b class=${entry.name ? "" : "hidden"}>${entry.name || "Agent"}</b>` : entry.name && !entry.mine && html`<b>${entry.name}</b>`;
  return html`<div class=${`said ${side(entry)} ${state}`} aria-busy=${state === "grows"}>${name}${shown}<${Files} files=${entry.files} /></div>`;
}

// A turn that failed for good; while nothing came after it, it can be asked again.
function Failed({ entry, last, command }) {
  const [asked, ask] = useState(false);
  return html`<div class="failed" role="group" aria-label="An answer failed">${entry.text}
    ${last && html`<p><button disabled=${asked} onClick=${() => { ask(true); command("/retry"); }}>${asked ? "Asking again …" : "Retry"}</button>
      <button onClick=${() => command("/why")}>Why</button></p>`}</div>`;
}

// Something that one is asked: a button for each choice, or a line for any words; the first answer wins, wherever it is given.
function Question({ id, words, choices, command }) {
  const [said, setSaid] = useState(""), [done, setDone] = useState(false);
  const answer = (text) => { setDone(true); command(`/answer ${id} ${text}`); };
  return html`<form class="question" aria-label="A question" onSubmit=${(e) => { e.preventDefault(); if (said.trim()) answer(said); }}>
    <p>${words}</p>
    ${choices.length ? html`<p>${choices.map((choice) => html`<button type="button" disabled=${done} onClick=${() => answer(choice)}>${choice}</button> `)}</p>`
      : html`<p><input aria-label="Your answer" value=${said} onInput=${(e) => setSaid(e.target.value)} disabled=${done} /> <button disabled=${done}>Answer</button></p>`}
  </form>`;
}

const clock = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit" });
const whole = new Intl.DateTimeFormat([], { dateStyle: "full", timeStyle: "medium" });
const date = new Intl.DateTimeFormat([], { weekday: "long", day: "numeric", month: "long" });
const dateOfYear = new Intl.DateTimeFormat([], { dateStyle: "long" });
const relative = new Intl.RelativeTimeFormat([], { numeric: "auto" });

function At({ entry }) {
  const when = new Date(entry.at * 1000);
  return html`<div class=${`at ${side(entry)}`}><time datetime=${when.toISOString()} title=${whole.format(when)}>${clock.format(when)}</time>
    ${entry.role === "agent" && entry.text && html`<${Copy} text=${entry.text} label="Copy this answer" />`}</div>`;
}

// Today and yesterday by their names, other days by their date.
function dayOf(at) {
  const when = new Date(at * 1000), today = new Date();
  const ago = Math.round((new Date(when).setHours(12, 0, 0, 0) - today.setHours(12, 0, 0, 0)) / 86_400_000);
  if (ago > -2 && ago < 1) return relative.format(ago, "day");
  return when.getFullYear() === today.getFullYear() ? date.format(when) : dateOfYear.format(when);
}

// A conversation on its way to another place, or gone there; why one came back is said in a notice.
function moved({ state, step, to }) {
  if (state === "done") return `This conversation goes on in ${to}. Write here to begin another.`;
  return state === "failed" || state === "cancelled" ? "" : `To ${to}: ${STEPS[step]} …`;
}

// What came earlier is asked for when somebody gets near the first that is shown, or all of it is on the screen; it comes in above
// what they read, which stays where it is.
function useEarlier(box, now, send) {
  const asked = useRef(null), high = useRef(0), first = now.transcript[0] && key(now.transcript[0]);
  const look = () => {
    if (!now.earlier || asked.current === now.earlier || box.current.scrollTop > NEAR) return;
    asked.current = now.earlier;
    send(ask.earlier(now.earlier));
  };
  const shown = useRef({});
  useLayoutEffect(() => {
    const { before, session } = shown.current;
    const came = before && session === now.session?.id && before !== first && now.transcript.some((e) => key(e) === before);
    if (came) box.current.scrollTop += box.current.scrollHeight - high.current;
    shown.current = { before: first, session: now.session?.id };
  }, [first, now.session?.id]);
  useLayoutEffect(() => { high.current = box.current.scrollHeight; });
  return look;
}

export function Talk({ now, send, command }) {
  const box = useRef(null), stays = useRef(true), last = useRef({});
  const lookUp = useEarlier(box, now, send);
  const waiting = [...now.waiting.map((entry) => ({ ...entry, role: "person" })), ...now.unsent.map((m) => ({ role: "person", mine: true, text: m.text, unsent: !m.accepted }))];
  // Whoever scrolled up to read isn't pulled down by what comes; what one says oneself is always shown.
  const stick = () => { if (stays.current) box.current.scrollTop = box.current.scrollHeight; };
  useEffect(stick);
  useEffect(() => {
    const sizes = new ResizeObserver(stick);
    sizes.observe(box.current);
    return () => sizes.disconnect();
  }, []);
  useEffect(() => { stays.current = true; stick(); }, [now.unsent.length, now.session?.id]);
  useEffect(lookUp, [now.earlier]);
  // What grows, and a window that changes its size, scroll too; only who moves up in what stands still wants to read there.
  const scrolled = ({ target: { scrollTop: top, scrollHeight: all, clientHeight: high, clientWidth: wide } }) => {
    const before = last.current, still = before.all === all && before.high === high && before.wide === wide;
    last.current = { top, all, high, wide };
    lookUp();
    if (all - top - high < 40) stays.current = true;
    else if (still && top < before.top) stays.current = false;
  };
  const noticed = (which) => now.notices.filter(which).map((x) => html`<${Notice} ...${x} />`), notices = (n) => noticed((x) => x.after === n && !x.meanwhile);
  const empty = !now.transcript.length && !waiting.length && !now.notices.length && !now.growing && !now.handoff && !now.questions.length;
  const idle = !waiting.length;
  const past = useMemo(() => now.transcript.map((e, i) => {
    const day = dayOf(e.at), before = now.transcript[i - 1];
    const shown = e.failed ? html`<${Failed} key=${key(e)} entry=${e} last=${idle && i === now.transcript.length - 1} command=${command} />`
      : html`<${Said} key=${key(e)} entry=${e} />`;
    return html`${(!before || dayOf(before.at) !== day) && html`<p class="day">${day}</p>`}${shown}<${At} entry=${e} />${notices(i + 1)}`;
  }), [now.transcript, now.notices, idle]);
  return html`<section ref=${box} class="talk" aria-label="Conversation" role="log" aria-live="polite" tabindex="0" onScroll=${scrolled}>
    ${empty && html`<p class="empty">Say something to begin. <br />/help lists what you can type.</p>`}
    ${notices(0)}
    ${past}
    ${waiting.map((e) => html`<${Said} entry=${e} state=${e.unsent ? "unsent" : ""} />`)}
    ${noticed((x) => x.meanwhile)}
    ${now.growing && html`<${Said} entry=${{ role: "agent", text: now.growing }} state="grows" />`}
    ${now.waiting.length > 0 && !now.growing && html`<div class="said agent thinks" role="img" aria-label="Answering"><i></i><i></i><i></i></div>`}
    ${now.questions.map((question) => html`<${Question} key=${question.id} ...${question} command=${command} />`)}
    ${now.handoff && moved(now.handoff) && html`<p class="notice" role="status">${moved(now.handoff)}</p>`}
  </section>`;
}
