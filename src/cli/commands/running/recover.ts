import { SessionError, type SessionStore } from "../../../index.ts";
import type { SessionQuery } from "../../../session/store.ts";
import { listPages } from "../../../stores/complete/list-pages.ts";
import type { ChatOutput } from "../../chat/chat-output.ts";
import type { ChatSession } from "../../chat/chat-session.ts";
import { CHAT_AGENT } from "../../chat/chat-turns.ts";
import { CHAT_JSON, CHAT_OPTIONS, type ChatSetup, openChat } from "../../chat/open-chat.ts";
import { followChat } from "../../chat/run-chat.ts";
import { type Command, type CommandContext, textOption } from "../../command.ts";
import { show } from "../../../session/errors.ts";
import { AGENTS_OPTION, loadAgents } from "../serving/agents-file.ts";
import { openProgramTools } from "../../options/program-tools.ts";
import { findSession, SESSION_ARGUMENT } from "../../options/session-reference.ts";

/** Recovers runs. */
export const recover: Command = {
  name: "recover",
  summary: "Continue a run here that was interrupted or answered, or start one that waits.",
  details:
    "A run is only continued by the agent that its log names: the agent of skein chat, which is named skein, or one of --agents. If the log names none, --agent chooses. If the tool of an open call is missing, the run is left as it is. Calls that need approval are asked about at a terminal; without one the run parks until skein approve or skein deny answers.",
  arguments: [{ ...SESSION_ARGUMENT, optional: true }],
  options: {
    all: { what: "all sessions of the store with such a run, one after the other" },
    agents: AGENTS_OPTION,
    agent: { value: "NAME", what: "the agent for a run whose log names none: skein, or one of --agents" },
    ...CHAT_OPTIONS,
  },
  examples: [
    { line: "skein recover last", what: "continue the run of the latest session" },
    { line: "skein recover --all --model openai/gpt-5-mini", what: "continue all runs that can continue" },
  ],
  json: CHAT_JSON,
  store: "existing",
  runsTools: true,
  async run(context) {
    await using opened = await openProgramTools(context);
    const { tools } = opened;
    await using store = await context.openStore();
    const ids = await sessionsFor(store, context);
    await using chat = await openChat(context, store, { tools, unattended: "parked", ...(await agentsFor(context)) });
    let done = true;
    for (const id of ids) {
      context.signal.throwIfAborted();
      done = (await followChat(chat.session, chat.frontEnd, continueRun(chat.session, id))).done && done;
    }
    context.signal.throwIfAborted();
    if (ids.length === 0 && !context.json) context.print("There is no run to recover.");
    return done ? 0 : 1;
  },
};

/** The agents of `--agents`, and the agent for runs whose log names none. */
async function agentsFor({ values }: CommandContext): Promise<Pick<ChatSetup, "others" | "models">> {
  const [file, unnamed = null] = [textOption(values, "agents"), textOption(values, "agent")];
  const { agents = [], models = [] } = file === undefined ? {} : await loadAgents(file);
  const named = new Map(agents.flatMap((agent) => (agent.name === null ? [] : [[agent.name, agent] as const])));
  if (unnamed !== null && unnamed !== CHAT_AGENT && !named.has(unnamed)) {
    const known = [CHAT_AGENT, ...named.keys()].map((name) => show(name)).join(", ");
    throw new SessionError("AGENT_NOT_FOUND", `There is no agent ${show(unnamed)} here; --agent accepts ${known}.`);
  }
  return { others: { agents: named, unnamed }, models };
}

async function* continueRun(session: ChatSession, id: string): AsyncGenerator<ChatOutput> {
  const tree = yield* session.enter(id);
  yield* session.catchRefusals(session.recover(tree));
}

async function sessionsFor(store: SessionStore, { positionals, values }: CommandContext): Promise<readonly string[]> {
  const [reference] = positionals;
  const all = values["all"] === true;
  if (reference !== undefined && !all) return [(await findSession(store, reference)).header.id];
  if (reference !== undefined || !all) {
    throw new SessionError("INVALID_OPTION", "Give a session, or --all for all sessions with a run to recover.");
  }
  const queries: readonly SessionQuery[] = [{ runs: "interrupted" }, { dueBefore: new Date().toISOString() }];
  const ids = new Set<string>();
  for (const query of queries) {
    for await (const { items } of listPages(store, query)) for (const { header } of items) ids.add(header.id);
  }
  return [...ids];
}
