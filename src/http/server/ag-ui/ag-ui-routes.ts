import { z } from "zod";
import { type JsonObject, sameJson } from "../../../internal/json.ts";
import { isOwn } from "../../../session/fold.ts";
import { inputIdOf, requestIdOf } from "../../../session/open-runs.ts";
import { RUN_HEADER } from "../../chat-wire.ts";
import { checkRight } from "../admission.ts";
import { chatHead, openRunOf, readSoFar, type SoFar } from "../chat/chat-session.ts";
import type { LeftRuns } from "../chat/left-runs.ts";
import { route, type RouteCall, type ServerApp } from "../route.ts";
import type { RunFeeds } from "../runs/run-feeds.ts";
import { type Backlog, checkAgent, draining, requestRun } from "../runs/request-run.ts";
import { answerQuestion, cancelRun } from "../runs/speak-to-run.ts";
import { named, refuse } from "../schema.ts";
import type { ServerServices } from "../server-services.ts";
import { openTree, visibleHead } from "../session-access.ts";
import { AgUiSource, type Said } from "./ag-ui-source.ts";
import { answersOf, checkVersion, type RunInput, runInput, wordsOf } from "./run-input.ts";

const STREAM = {
  200: {
    description: "Server-Sent Events; the data of each is an event of AG-UI.",
    contentType: "text/event-stream",
    schema: named<object>("AgUiEvent", z.object({ type: z.string() })),
  },
} as const;

/** What the AG-UI routes share with those of runs and chats. */
export interface AgUiParts {
  readonly backlog: Backlog;
  readonly feeds: RunFeeds;
  readonly left: LeftRuns;
}

type Call = RouteCall<unknown, RunInput>;

const NOTHING: Said = { turns: [], variables: {}, version: 0 };

/** Adds the route that a client of AG-UI talks to. A thread is a session. */
export function mountAgUi(app: ServerApp, services: ServerServices, parts: AgUiParts): void {
  route(app, {
    method: "post",
    path: "/agui/:agent",
    operationId: "runAgUi",
    summary:
      "Says something in a thread, answers what its run asks, or joins it, and streams what comes of it, for AG-UI.",
    body: runInput,
    problems: [503],
    content: true,
    answers: STREAM,
    async handle(call) {
      if (services.drain.aborted) throw draining();
      checkAgent(services, call.param("agent"));
      checkVersion(call.body);
      const asked = await askedBy(services, { ...parts, partsMax: app.limits.contentPartsMax }, call);
      return streamOf(services, parts, call, asked);
    },
  });
}

/** The run that a stream tells of, and what was said before what it tells. */
interface Asked {
  readonly runId: string | null;
  readonly said: Said;
  /** The questions that were answered just now. */
  readonly answered?: readonly string[];
}

/** Does what a request asks for: says something, answers, or only joins. */
async function askedBy(
  services: ServerServices,
  { backlog, partsMax }: Pick<AgUiParts, "backlog"> & { readonly partsMax: number },
  { body, caller, as, param }: Call,
): Promise<Asked> {
  const sessionId = body.threadId;
  const soFar = await readSoFar(services, sessionId, caller);
  const said = soFar ?? NOTHING;
  const answers = answersOf(body);
  const words = wordsOf(body, said.turns, partsMax);
  const set = changesOf(body, said.variables);
  if (answers.length > 0) {
    checkRight(caller, "approve");
    if (words?.known === false) refuse("body.messages", "Something new is said with answers; send the answers first.");
    let runId = "";
    for (const { question, ...answered } of answers) {
      runId = await answerQuestion(services, { sessionId, question, body: answered, as });
    }
    return { runId, said, answered: answers.map(({ question }) => question) };
  }
  if (words === null || words.known) {
    return { runId: soFar === null ? null : await runToTell(services, soFar, words?.id), said };
  }
  checkRight(caller, "run");
  const { openRuns } = await chatHead(services, sessionId, caller);
  // While a run is open the request is refused, and so changes nothing.
  if (openRuns.length === 0 && Object.keys(set).length > 0) {
    await (await openTree(services, sessionId, caller)).appendAll([{ type: "variables", set, unset: [] }]);
  }
  const request = { agent: param("agent"), input: words.content, runId: words.id };
  const runId = await requestRun(services, backlog, { sessionId, request, caller });
  const turn = { turnId: inputIdOf(runId), role: "user", content: words.content } as const;
  return { runId, said: { ...said, turns: [...said.turns, turn], variables: { ...said.variables, ...set } } };
}

/** The run that a message asked for before, unless a fork took that over; else the one that is open. */
async function runToTell(
  { store }: ServerServices,
  { head }: SoFar,
  words: string | undefined,
): Promise<string | null> {
  const request = words === undefined ? null : await store.getEntry(head.header.id, requestIdOf(words));
  if (words !== undefined && request !== null && isOwn(head.header, request, request.seq)) return words;
  return openRunOf(head)?.runId ?? null;
}

/** What a client has changed of the variables. What it does not have stays: it may not have heard of it. */
function changesOf({ state }: RunInput, variables: JsonObject): JsonObject {
  if (state === undefined || state === null) return {};
  if (typeof state !== "object" || Array.isArray(state)) refuse("body.state", "The state of a session is an object.");
  const changed = Object.entries(state).filter(([key, value]) => !sameJson(value, variables[key]));
  return Object.fromEntries(changed) as JsonObject;
}

async function streamOf(services: ServerServices, parts: AgUiParts, call: Call, asked: Asked): Promise<Response> {
  const { body, caller, as, admission, request } = call;
  const { threadId, runId } = body;
  const { runId: followed, said, answered = [] } = asked;
  const feed =
    followed === null ? null : await parts.feeds.follow(await visibleHead(services, threadId, caller), followed, null);
  const stop = (): void => {
    if (services.drain.aborted || followed === null) return;
    const why = { runId: followed, reason: "Everyone who read it has left." };
    cancelRun(services, threadId, why, as).catch(services.report);
  };
  const source = new AgUiSource({
    ...{ threadId, runId, feed, feedRunId: followed ?? "", answered: new Set(answered) },
    read: async () => (await readSoFar(services, threadId, caller)) ?? NOTHING,
    readVariables: async () =>
      (await services.manager.getState(threadId, { ...as, turns: false, checkpoint: false }))?.variables ?? {},
    onLeft: feed === null ? () => {} : parts.left.join(JSON.stringify([threadId, followed]), stop),
  });
  source.begin(said);
  const response = parts.feeds.streams.open(source, request, admission);
  if (request.signal.aborted) source.leave();
  if (followed !== null) response.headers.set(RUN_HEADER, encodeURIComponent(followed));
  return response;
}
