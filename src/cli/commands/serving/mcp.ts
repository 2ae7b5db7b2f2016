import { realpath } from "node:fs/promises";
import { namedPath } from "../../../stores/named-path.ts";
import { LOCAL_USER } from "../../../lifecycle/access.ts";
import { serveMcpOverStdio } from "../../../mcp-server/mcp-server.ts";
import { SessionScope } from "../../../mcp-server/session-scope.ts";
import { sessionTools } from "../../../mcp-server/session-tools.ts";
import { type Command, textOption, textsOption } from "../../command.ts";
import { openManager } from "../../open-manager.ts";
import { writeHandoff } from "../keeping/handoff.ts";

/** Serves sessions to other agents. */
export const mcp: Command = {
  name: "mcp",
  summary: "Let other agents search and read your sessions: an MCP server on standard input and output.",
  details:
    "The settings of an agent name this command; docs/guides/earlier-sessions.md has the lines for Claude Code, Codex, opencode, pi, Zed and VS Code. The tools are search_sessions, read_session, list_sessions and session_tree. An answer has at most 4,000 tokens, quotes sessions as data, and leaves out secrets as exports do. It needs the package @modelcontextprotocol/sdk.",
  arguments: [],
  options: {
    user: { value: "ID", default: LOCAL_USER, what: "whose sessions are shown" },
    all: { what: "show sessions of every directory (default: only those of the directory it is started in)" },
    exclude: { value: "DIR", repeated: true, what: "show no sessions of this directory and those below it" },
    write: {
      what: "also offer fork_session, label_entry and handoff_session, which writes a session for another program and starts nothing",
    },
  },
  examples: [
    { line: "skein mcp", what: "what an agent's settings name: the sessions of the current directory" },
    { line: "skein mcp --all --exclude ~/private", what: "those of every directory but one" },
  ],
  json: {},
  store: "made",
  async run(context) {
    const { values, signal } = context;
    await using store = await context.openStore();
    await using manager = await openManager(store);
    const scope = new SessionScope({
      manager,
      actor: textOption(values, "user") ?? LOCAL_USER,
      directory: values["all"] === true ? null : process.cwd(),
      excluded: (await Promise.all(textsOption(values, "exclude").map(namesOf))).flat(),
    });
    const write = {
      account: null,
      handOff: async (id: string, { program, directory }: { program: string; directory?: string | undefined }) =>
        writeHandoff(store, id, {
          to: program,
          cwd: directory === undefined ? undefined : namedPath(directory),
          signal,
        }),
    };
    const tools = sessionTools(scope, values["write"] === true ? write : null);
    await serveMcpOverStdio(tools, { input: process.stdin, output: process.stdout, signal });
    return 0;
  },
};

/** A directory as the user names it, and without links: programs record either. */
async function namesOf(directory: string): Promise<readonly string[]> {
  const named = namedPath(directory);
  const real = await realpath(named).catch(() => named);
  return [...new Set([named, real])];
}
