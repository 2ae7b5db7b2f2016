import { Readable, Writable } from "node:stream";
import { AGENT_OPTIONS, chatInit } from "../chat/open-chat.ts";
import type { Command } from "../command.ts";
import { openManager } from "../open-manager.ts";
import { SessionError } from "../../index.ts";
import { AcpAgent } from "./acp-agent.ts";

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
    const sdk = await loadSdk();
    const init = chatInit(context);
    await using store = await context.openStore();
    await using manager = openManager(store);
    await using agent = new AcpAgent(sdk, { ...init, manager, questions: "asked" });
    const stream = sdk.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin));
    const connection = agent.app.connect(stream);
    context.signal.addEventListener("abort", () => connection.close(), { once: true });
    await connection.closed;
    return 0;
  },
};

/** Loads the package of the protocol, with the parts of it that may still change. */
async function loadSdk() {
  try {
    const sdk = await import("@agentclientprotocol/sdk/unstable");
    if ("auth_status" in sdk.AGENT_METHODS) return sdk;
    throw new Error("This version has no auth/status.");
  } catch (cause) {
    // Versions before 2 have no such part, and those before 2.4 not all of its methods.
    const isMissing = (cause as NodeJS.ErrnoException).code === "ERR_MODULE_NOT_FOUND";
    const here = isMissing ? "none is installed" : "another version is installed";
    const text = `An agent for editors needs a package, and ${here}: npm install @agentclientprotocol/sdk@^2.4.`;
    throw new SessionError(isMissing ? "DRIVER_MISSING" : "DRIVER_VERSION", text, { cause });
  }
}
