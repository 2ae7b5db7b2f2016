import { z } from "zod";
import { type JsonObject, sameJson } from "../../../internal/json.ts";
import type { EntryDraft } from "../../../session/log/entry.ts";
import { isOwn, type SessionHead } from "../../../session/log/fold.ts";
import { inputIdOf } from "../../../session/log/open-runs.ts";
import { checkRight } from "../gate/authenticator.ts";
import { eventStream, route, type RouteCall, type ServerApp } from "../route.ts";
import { type WriterFeed, writtenFrames } from "../runs/run-feed.ts";
import { type FrontEndParts, streamRun } from "../runs/run-feeds.ts";
import { openRunOf } from "../runs/run-views.ts";
import { type Backlog, checkAgent, draining, requestRun } from "../runs/request-run.ts";
import { readSoFar } from "../runs/so-far.ts";
import { answerQuestions } from "../runs/cancel-and-answer.ts";
import { named, refuse } from "../schema.ts";
import type { ServerServices } from "../server-services.ts";
import { withBlobSizes } from "../routes/blob-routes.ts";
import { openTree, visibleHead, visibleOrNewHead } from "../routes/session-access.ts";
import { AgUiWriter, type AskedStream } from "./ag-ui-writer.ts";
import { answersOf, checkVersion, type RunInput, runInput, newUserInput } from "./run-input.ts";

const event = named<object>("AgUiEvent", z.object({ type: z.string() }));

/** For a stream without a run. */
const NO_FEED: WriterFeed = { attach: () => () => {}, take: async () => null, questions: [], seen: 0 };

type Call = RouteCall<unknown, RunInput>;

/** Adds the route for AG-UI clients. A thread is a session. */
export function mountAgUi(app: ServerApp, services: ServerServices, { backlog, feeds }: FrontEndParts): void {
  route(app, {
    method: "post",
    path: "/agui/:agent",
    operationId: "runAgUi",
    summary:
      "Sends a message to a thread, answers its open questions, or joins its run, and streams the events, for AG-UI.",
    body: runInput,
    problems: [503],
    content: true,
    answers: eventStream("an event of AG-UI", event),
    async handle(call) {
      if (services.drain.aborted) throw draining();
      checkAgent(services, call.param("agent"));
      checkVersion(call.body);
      const asked = await askedBy(services, backlog, call);
      const { runId } = asked;
      const writer = new AgUiWriter(services, call, asked);
      if (runId === null) return feeds.streams.open(writtenFrames(NO_FEED, writer), call.request, call.admission);
      const head = await visibleHead(services, call.body.threadId, call.caller);
      return streamRun(services, feeds, call, { head, runId, writer });
    },
  });
}

/** Handles a request: appends answers to questions, requests a run, or only joins the present one. */
async function askedBy(
  services: ServerServices,
  backlog: Backlog,
  { body, caller, as, param }: Call,
): Promise<AskedStream> {
  const sessionId = body.threadId;
  const said = await readSoFar(services, sessionId, caller);
  const answers = answersOf(body);
  const words = newUserInput(body, said.turns);
  const set = changesOf(body, said.variables);
  if (answers.length > 0) {
    if (words.length > 0) refuse("body.messages", "Something new is said with answers; send the answers first.");
    const runId = await answerQuestions(services, { sessionId, answers, as });
    return { runId, said, answered: answers.map(({ question }) => question) };
  }
  const last = words.at(-1);
  const isNew = last !== undefined && said.turns.every(({ turnId }) => turnId !== inputIdOf(last.id));
  if (last === undefined || (!isNew && (await isInherited(services, said.head, inputIdOf(last.id)))))
    return { said, runId: (said.head && openRunOf(said.head)?.runId) ?? null };
  checkRight(caller, "run");
  const { openRuns } = await visibleOrNewHead(services, sessionId, caller);
  // A request that changes variables is refused while a run is open, so it has no effect.
  if (isNew && openRuns.length === 0) {
    const drafts: EntryDraft[] = Object.keys(set).length > 0 ? [{ type: "variables", set, unset: [] }] : [];
    for (const { id, content: given } of words.slice(0, -1)) {
      const content = await withBlobSizes(services.store, sessionId, given);
      drafts.push({ type: "message", id, message: { role: "user", content } });
    }
    if (drafts.length > 0) await (await openTree(services, sessionId, caller)).appendAll(drafts);
  }
  const input = await withBlobSizes(services.store, sessionId, last.content);
  const request = { agent: param("agent"), input, runId: last.id };
  const { runId } = await requestRun(services, backlog, { sessionId, request, caller });
  if (!isNew) return { runId, said };
  const turns = words.map(
    ({ id, content }) => ({ turnId: id === last.id ? inputIdOf(id) : id, role: "user", content }) as const,
  );
  return { runId, said: { ...said, turns: [...said.turns, ...turns], variables: { ...said.variables, ...set } } };
}

/** Whether the message was inherited by a fork: then its run belongs to another session. */
async function isInherited({ store }: ServerServices, head: SessionHead | null, entryId: string): Promise<boolean> {
  const entry = head && (await store.getEntry(head.header.id, entryId));
  return head !== null && entry !== null && !isOwn(head.header, entry, entry.seq);
}

/**
 * The variables that a client has changed. Variables that the client does not mention are kept: it may not know them
 * yet.
 */
function changesOf({ state }: RunInput, variables: JsonObject): JsonObject {
  if (state === undefined || state === null) return {};
  if (typeof state !== "object" || Array.isArray(state)) refuse("body.state", "The state of a session is an object.");
  const changed = Object.entries(state).filter(([key, value]) => !sameJson(value, variables[key]));
  return Object.fromEntries(changed) as JsonObject;
}
