// The frames of the wire, as runtime/windows/frames.py defines them: what is asked for, and what each that comes changes.
// A test compares both sides with the definition.

export const ask = {
  open: (page) => ({ kind: "open", page }),
  say: (id, text) => ({ kind: "say", id, text }),
  earlier: (cursor) => ({ kind: "earlier", cursor }),
  resume: (session) => ({ kind: "resume", session }),
  commands: () => ({ kind: "commands" }),
  sessions: () => ({ kind: "sessions" }),
  search: (words) => ({ kind: "search", words }),
};

// How far a conversation is on its way to another place.
export const STEPS = {
  requested: "asked for",
  claimed: "on its way",
  opened: "the place is open",
  writing: "the agent writes there",
  sending: "its first words are being sent",
  ended: "ended",
};

export const start = {
  session: null, transcript: [], earlier: null, growing: "", waiting: [], notices: [], handoff: null, unsent: [], questions: [], sessions: [], commands: [], found: null, state: "connecting",
};

// A notice stands behind what was there when it came; one that came while a message waited for its answer, between the two.
const noticed = (now, notice) => ({ ...now, notices: [...now.notices, { ...notice, after: now.transcript.length, meanwhile: now.waiting.length > 0 }] });
const settled = ({ notices, transcript }, entries) => {
  const asked = entries.findIndex((entry) => entry.role !== "person"), after = transcript.length + (asked < 0 ? entries.length : asked);
  return notices.map((notice) => (notice.meanwhile ? { ...notice, after, meanwhile: false } : notice));
};

export const shows = {
  transcript: (now, { session, entries, earlier }) => ({ ...now, session, transcript: entries, earlier, growing: "", notices: [], handoff: session ? null : now.handoff }),
  entries: (now, { session, entries }) => (entries.length ? { ...now, session, transcript: [...now.transcript, ...entries], notices: settled(now, entries), growing: "" } : { ...now, session, growing: "" }),
  earlier: (now, { entries, earlier }) => ({
    ...now, transcript: [...entries, ...now.transcript], earlier, notices: now.notices.map((notice) => ({ ...notice, after: notice.after + entries.length })),
  }),
  growing: (now, { text, begins }) => ({ ...now, growing: begins ? text : now.growing + text }),
  // What was accepted is shown by the gateway from here on: among what waits, or in the transcript.
  waiting: (now, { turns }) => ({ ...now, waiting: turns, growing: turns.length ? now.growing : "", unsent: now.unsent.filter((m) => !m.accepted) }),
  accepted: (now, { id }) => ({ ...now, unsent: now.unsent.map((m) => (m.id === id ? { ...m, accepted: true } : m)) }),
  answered: (now) => now, // What is answered stands in the transcript, or in a notice.
  notice: (now, { text, files }) => noticed(now, { text, files }),
  refused: (now, { text }) => noticed(now, { text }),
  invitation: (now, { code, links, typed }) => noticed(now, { invitation: { code, links, typed } }),
  questions: (now, { questions }) => ({ ...now, questions }),
  handoff: (now, { state, step, to }) => ({ ...now, handoff: { state, step, to } }),
  sessions: (now, { sessions }) => ({ ...now, sessions }),
  commands: (now, { commands }) => ({ ...now, commands }),
  found: (now, { sessions }) => ({ ...now, found: sessions }),
};

// What the page knows by itself.
const knows = {
  state: (now, { state }) => ({ ...now, state }),
  unsent: (now, { message }) => ({ ...now, unsent: [...now.unsent, message] }),
  unsought: (now) => ({ ...now, found: null }),
};

export const reduce = (now, frame) => (shows[frame.kind] ?? knows[frame.kind])(now, frame);
