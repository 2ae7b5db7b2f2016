import { SessionError, type SessionStore } from "../../../index.ts";
import type { SessionQuery } from "../../../session/store.ts";
import { listPages } from "../../../stores/complete/list-pages.ts";
import type { ChatOutput } from "../../chat/chat-output.ts";
import type { ChatSession } from "../../chat/chat-session.ts";
import { CHAT_JSON, CHAT_OPTIONS, openChat } from "../../chat/open-chat.ts";
import { followChat } from "../../chat/run-chat.ts";
import type { Command, CommandContext } from "../../command.ts";
import { findSession, SESSION_ARGUMENT } from "../../options/session-reference.ts";

/** Goes on with runs that nobody has. */
export const recover: Command = {
  name: "recover",
  summary: "Go on here with a run that was interrupted, has its answers, or waits to begin.",
  details:
    "The agent is that of skein chat, whichever one the run was for. Calls that need a person's word are asked about at a terminal; through a pipe the run parks, and skein approve answers.",
  arguments: [{ ...SESSION_ARGUMENT, optional: true }],
  options: { all: { what: "every session of the store with such a run, one after the other" }, ...CHAT_OPTIONS },
  examples: [
    { line: "skein recover last", what: "go on with what the latest session was doing" },
    { line: "skein recover --all --model openai/gpt-5-mini", what: "go on with everything that waits" },
  ],
  json: CHAT_JSON,
  store: "existing",
  runsTools: true,
  async run(context) {
    await using store = await context.openStore();
    const ids = await sessionsFor(store, context);
    await using chat = await openChat(context, store, "parked");
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
