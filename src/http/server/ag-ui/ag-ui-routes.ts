import { z } from "zod";
import { type JsonObject, sameJson } from "../../../internal/json.ts";
import type { EntryDraft } from "../../../session/log/entry.ts";
import { inputIdOf } from "../../../session/log/open-runs.ts";
import { checkRight } from "../gate/admission.ts";
import type { ChatParts } from "../chat/chat-routes.ts";
import { readSoFar, type SoFar } from "../chat/chat-session.ts";
import { route, type RouteCall, type ServerApp } from "../route.ts";
import { type RunFeeds, streamRun } from "../runs/run-feeds.ts";
import { openRunOf } from "../runs/run-views.ts";
import { checkAgent, draining, requestRun } from "../runs/request-run.ts";
import { answerQuestions } from "../runs/speak-to-run.ts";
import { named, refuse } from "../schema.ts";
import type { ServerServices } from "../server-services.ts";
import { openTree, visibleHead, visibleOrNewHead } from "../routes/session-access.ts";
import { AgUiSource } from "./ag-ui-source.ts";
import { answersOf, checkVersion, type RunInput, runInput, wordsOf } from "./run-input.ts";

const event = named<object>("AgUiEvent", z.object({ type: z.string() }));
const description = "Server-Sent Events; the data of each is an event of AG-UI.";

type Call = RouteCall<unknown, RunInput>;

/** Adds the route that a client of AG-UI talks to. A thread is a session. */
export function mountAgUi(app: ServerApp, services: ServerServices, parts: ChatParts): void {
  route(app, {
    method: "post",
    path: "/agui/:agent",
    operationId: "runAgUi",
    summary:
      "Says something in a thread, answers what its run asks, or joins it, and streams what comes of it, for AG-UI.",
    body: runInput,
    problems: [503],
    content: true,
    answers: { 200: { description, contentType: "text/event-stream", schema: event } },
    async handle(call) {
      if (services.drain.aborted) throw draining();
      checkAgent(services, call.param("agent"));
      checkVersion(call.body);
      const asked = await askedBy(services, { ...parts, partsMax: app.limits.contentPartsMax }, call);
      return streamOf(services, parts.feeds, call, asked);
    },
  });
}

/** The run that a stream tells of, and what was said before what it tells. */
interface Asked {
  readonly runId: string | null;
  readonly said: SoFar;
  /** The questions that were answered just now. */
  readonly answered?: readonly string[];
}

/** Does what a request asks for: answers, says something, or only joins. */
async function askedBy(
  services: ServerServices,
  { backlog, partsMax }: Pick<ChatParts, "backlog"> & { readonly partsMax: number },
  { body, caller, as, param }: Call,
): Promise<Asked> {
  const sessionId = body.threadId;
  const said = await readSoFar(services, sessionId, caller);
  const answers = answersOf(body);
  const words = wordsOf(body, said.turns, partsMax);
  const set = changesOf(body, said.variables);
  if (answers.length > 0) {
    checkRight(caller, "approve");
    if (words.length > 0) refuse("body.messages", "Something new is said with answers; send the answers first.");
    const runId = await answerQuestions(services, { sessionId, answers, as });
    return { runId, said, answered: answers.map(({ question }) => question) };
  }
  const last = words.at(-1);
  if (last === undefined) return { said, runId: (said.head && openRunOf(said.head)?.runId) ?? null };
  checkRight(caller, "run");
  const { openRuns } = await visibleOrNewHead(services, sessionId, caller);
  const turns = words.map(
    ({ id, content }) => ({ turnId: id === last.id ? inputIdOf(id) : id, role: "user", content }) as const,
  );
  const isNew = said.turns.every(({ turnId }) => turnId !== inputIdOf(last.id));
  // While a run is open the request is refused, and so changes nothing.
  if (isNew && openRuns.length === 0) {
    const drafts: EntryDraft[] = Object.keys(set).length > 0 ? [{ type: "variables", set, unset: [] }] : [];
    for (const { id, content } of words.slice(0, -1))
      drafts.push({ type: "message", id, message: { role: "user", content } });
    if (drafts.length > 0) await (await openTree(services, sessionId, caller)).appendAll(drafts);
  }
  const request = { agent: param("agent"), input: last.content, runId: last.id };
  const runId = await requestRun(services, backlog, { sessionId, request, caller });
  if (!isNew) return { runId, said };
  return { runId, said: { ...said, turns: [...said.turns, ...turns], variables: { ...said.variables, ...set } } };
}

/** What a client has changed of the variables. What it does not have stays: it may not have heard of it. */
function changesOf({ state }: RunInput, variables: JsonObject): JsonObject {
  if (state === undefined || state === null) return {};
  if (typeof state !== "object" || Array.isArray(state)) refuse("body.state", "The state of a session is an object.");
  const changed = Object.entries(state).filter(([key, value]) => !sameJson(value, variables[key]));
  return Object.fromEntries(changed) as JsonObject;
}

async function streamOf(
  services: ServerServices,
  feeds: RunFeeds,
  call: Call,
  { runId: told, said, answered = [] }: Asked,
): Promise<Response> {
  const sessionId = call.body.threadId;
  if (told === null) {
    const source = new AgUiSource({ services, call, run: null, said, answered });
    return feeds.streams.open(source, call.request, call.admission);
  }
  const feed = await feeds.follow(await visibleHead(services, sessionId, call.caller), told, null);
  const run = feed && { runId: told, feed };
  const source = new AgUiSource({ services, call, run, said, answered });
  return streamRun(services, feeds, call, { sessionId, runId: told, frames: source, isDone: () => source.done });
}
