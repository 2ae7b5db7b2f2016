import { SessionError, SessionTree } from "../../../index.ts";
import type { Command } from "../../command.ts";
import { ENTRY_NAMES, findEntry, findSession, SESSION_ARGUMENT } from "../../options/session-reference.ts";

/** Labels an entry. */
export const label: Command = {
  name: "label",
  summary: "Set or remove the label of an entry.",
  arguments: [
    SESSION_ARGUMENT,
    { name: "entry", what: `the entry: ${ENTRY_NAMES}` },
    { name: "label", optional: true, what: "the label" },
  ],
  options: { remove: { what: "remove the label" } },
  examples: [
    { line: 'skein label last leaf "before the refactoring"', what: "label the last entry of the latest session" },
    { line: "skein label last leaf --remove", what: "remove that label" },
  ],
  json: { sessionId: "the session's id", entryId: "the entry's id", label: "its label, or null" },
  store: "existing",
  async run(context) {
    const [session = "", entry = "", text] = context.positionals;
    const removes = context.values["remove"] === true;
    if (removes === (text !== undefined)) {
      throw new SessionError("INVALID_OPTION", "label needs either a label or --remove; see skein label --help.");
    }
    await using store = await context.openStore();
    const head = await findSession(store, session);
    const { id: entryId } = await findEntry(store, head, entry);
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
  arguments: [SESSION_ARGUMENT, { name: "name", what: "the name" }],
  options: {},
  examples: [{ line: 'skein rename last "Plan a trip"', what: "name the latest session" }],
  json: { sessionId: "the session's id", name: "its name" },
  store: "existing",
  async run(context) {
    const [session = "", name = ""] = context.positionals;
    await using store = await context.openStore();
    const { header } = await findSession(store, session);
    await (await SessionTree.on(store, header.id)).setName(name);
    if (context.json) context.printJson({ sessionId: header.id, name });
    else context.print(`Session ${header.id} is named ${name}.`);
    return 0;
  },
};
