import { Readable, Writable } from "node:stream";
import { AGENT_OPTIONS, chatInit } from "../chat/open-chat.ts";
import type { Command } from "../command.ts";
import { openManager } from "../open-manager.ts";
import { AcpAgent } from "./acp-agent.ts";
import { loadAcpSdk } from "./acp-sdk.ts";

/** Serves sessions to an editor. */
export const acp: Command = {
  name: "acp",
  summary: "Be an agent in an editor, by the Agent Client Protocol on standard input and output.",
  details:
    "An editor starts it, as its settings say; docs/guides/in-your-editor.md shows them. The tools act in the directory that the editor names, and the editor asks for your word. It ends when its input does.",
  arguments: [],
  options: AGENT_OPTIONS,
  examples: [
    { line: "skein acp", what: "what an editor runs" },
    { line: "skein acp --model anthropic/claude-sonnet-4-6", what: "the same with a model that needs a key" },
  ],
  json: {},
  store: "made",
  runsTools: true,
  async run(context) {
    const sdk = await loadAcpSdk();
    const init = chatInit(context);
    await using store = await context.openStore();
    await using manager = await openManager(store);
    await using agent = new AcpAgent(sdk, { ...init, manager, questions: "asked" });
    const stream = sdk.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin));
    const connection = agent.app.connect(stream);
    context.signal.addEventListener("abort", () => connection.close(), { once: true });
    await connection.closed;
    return 0;
  },
};
