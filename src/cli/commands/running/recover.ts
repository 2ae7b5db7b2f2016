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

/** Goes on with runs that nobody has. */
export const recover: Command = {
  name: "recover",
  summary: "Go on here with a run that was interrupted, has its answers, or waits to begin.",
  details:
    "Goes on only with the agent that the log of the run names: that of skein chat, which is called skein, or one of --agents. Where the log names none, --agent says which. A call whose tool is missing is not answered: the run stays as it is. Calls that need a person's word are asked about at a terminal; through a pipe the run parks, and skein approve answers.",
  arguments: [{ ...SESSION_ARGUMENT, optional: true }],
  options: {
    all: { what: "every session of the store with such a run, one after the other" },
    agents: AGENTS_OPTION,
    agent: { value: "NAME", what: "who goes on with a run whose log names no agent: skein, or one of --agents" },
    ...CHAT_OPTIONS,
  },
  examples: [
    { line: "skein recover last", what: "go on with what the latest session was doing" },
    { line: "skein recover --all --model openai/gpt-5-mini", what: "go on with everything that waits" },
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
      done = (await followChat(chat.session, chat.frontEnd, goOn(chat.session, id))).done && done;
    }
    context.signal.throwIfAborted();
    if (ids.length === 0 && !context.json) context.print("No run waits to begin or to go on.");
    return done ? 0 : 1;
  },
};

/** The agents of a file, and the one that goes on where the log names none. */
async function agentsFor({ values }: CommandContext): Promise<Pick<ChatSetup, "others" | "models">> {
  const [file, unnamed = null] = [textOption(values, "agents"), textOption(values, "agent")];
  const { agents = [], models = [] } = file === undefined ? {} : await loadAgents(file);
  const named = new Map(agents.flatMap((agent) => (agent.name === null ? [] : [[agent.name, agent] as const])));
  if (unnamed !== null && unnamed !== CHAT_AGENT && !named.has(unnamed)) {
    const known = [CHAT_AGENT, ...named.keys()].map((name) => show(name)).join(", ");
    throw new SessionError("AGENT_NOT_FOUND", `There is no agent ${show(unnamed)} here; --agent takes ${known}.`);
  }
  return { others: { agents: named, unnamed }, models };
}

async function* goOn(session: ChatSession, id: string): AsyncGenerator<ChatOutput> {
  const tree = yield* session.enter(id);
  yield* session.refusing(session.recover(tree));
}

async function sessionsFor(store: SessionStore, { positionals, values }: CommandContext): Promise<readonly string[]> {
  const [reference] = positionals;
  const all = values["all"] === true;
  if (reference !== undefined && !all) return [(await findSession(store, reference)).header.id];
  if (reference !== undefined || !all) {
    throw new SessionError("INVALID_OPTION", "Give a session, or --all for every one with a run to go on with.");
  }
  const queries: readonly SessionQuery[] = [{ runs: "interrupted" }, { dueBefore: new Date().toISOString() }];
  const ids = new Set<string>();
  for (const query of queries) {
    for await (const { items } of listPages(store, query)) for (const { header } of items) ids.add(header.id);
  }
  return [...ids];
}
