import { SessionError, SessionTree } from "../../../index.ts";
import type { Command } from "../../command.ts";
import { findEntryId, findSession, SESSION_ARGUMENT } from "../../options/session-reference.ts";

/** Labels an entry. */
export const label: Command = {
  name: "label",
  summary: "Give an entry of a session a label, or take it away.",
  arguments: [
    SESSION_ARGUMENT,
    { name: "entry", what: 'the entry: its id, or "leaf"' },
    { name: "label", optional: true, what: "what to call it" },
  ],
  options: { remove: { what: "take the label away" } },
  examples: [
    { line: 'skein label last leaf "before the refactoring"', what: "mark where the latest session stands" },
    { line: "skein label last leaf --remove", what: "take that mark away" },
  ],
  json: { sessionId: "the session's id", entryId: "the entry's id", label: "its label now, or null" },
  store: "existing",
  async run(context) {
    const [session = "", entry = "", text] = context.positionals;
    const removes = context.values["remove"] === true;
    if (removes === (text !== undefined)) {
      throw new SessionError("INVALID_OPTION", "label needs either a label or --remove; see skein label --help.");
    }
    await using store = await context.openStore();
    const head = await findSession(store, session);
    const entryId = await findEntryId(store, head, entry);
    const tree = await SessionTree.on(store, head.header.id);
    await tree.setLabel(entryId, text ?? null);
    if (context.json) context.printJson({ sessionId: tree.id, entryId, label: text ?? null });
    else context.print(removes ? `Entry ${entryId} has no label.` : `Entry ${entryId} is labelled ${text}.`);
    return 0;
  },
};

/** Names a session. */
export const rename: Command = {
  name: "rename",
  summary: "Give a session a name.",
  arguments: [SESSION_ARGUMENT, { name: "name", what: "what to call it" }],
  options: {},
  examples: [{ line: 'skein rename last "Plan a trip"', what: "name the latest session" }],
  json: { sessionId: "the session's id", name: "its name now" },
  store: "existing",
  async run(context) {
    const [session = "", name = ""] = context.positionals;
    await using store = await context.openStore();
    const { header } = await findSession(store, session);
    await (await SessionTree.on(store, header.id)).setName(name);
    if (context.json) context.printJson({ sessionId: header.id, name });
    else context.print(`Session ${header.id} is called ${name}.`);
    return 0;
  },
};
