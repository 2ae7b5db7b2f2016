import { SessionTree } from "../../../index.ts";
import type { Command } from "../../command.ts";
import { findSession, SESSION_ARGUMENT } from "../../options/session-reference.ts";

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
