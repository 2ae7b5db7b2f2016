import { z } from "zod";
import type { RunEvent } from "../../../agent/run-event.ts";
import type { SessionHead } from "../../../session/log/fold.ts";
import type { ChatRequest, ChatView, SelectBranch, StopChat } from "../../chat-wire.ts";
import { messageIdOfRun } from "../../shown-turn.ts";
import { AnswerWriter } from "../../ui/answer-writer.ts";
import { answerMessageIdOf } from "../../ui/to-ui-messages.ts";
import { checkRight } from "../gate/authenticator.ts";
import { answer, eventStream, noContent, type RouteCall, route, type ServerApp } from "../route.ts";
import { openTree, visibleHead, visibleOrNewHead } from "../routes/session-access.ts";
import { draining, requestRun } from "../runs/request-run.ts";
import type { RunWriter } from "../runs/run-feed.ts";
import { type FrontEndParts, type RunFeeds, streamRun } from "../runs/run-feeds.ts";
import { openRunOf, runToJoin } from "../runs/run-views.ts";
import { answerQuestions, cancelRun } from "../runs/cancel-and-answer.ts";
import { id, jsonObject, list, named } from "../schema.ts";
import type { ServerServices } from "../server-services.ts";
import { lastMessageOf } from "./chat-message.ts";
import { askedBy, chatBlobUrl, readChat, readMetadata } from "./chat-session.ts";

const MESSAGES_MAX = 10_000;

const chatRequest = named<ChatRequest>(
  "ChatRequest",
  z.looseObject({
    id,
    messages: list(jsonObject, MESSAGES_MAX),
    trigger: z.enum(["submit-message", "regenerate-message"]).optional(),
    messageId: id.optional(),
    agent: id.optional(),
    model: id.optional(),
  }),
);
const stopChat = named<StopChat>("StopChatRequest", z.strictObject({ runId: id.optional() }));
const selectBranch = named<SelectBranch>("SelectBranchRequest", z.strictObject({ entryId: id }));
const chatView = named<ChatView>(
  "Chat",
  z.object({ id: z.string(), messages: z.array(jsonObject) }) as unknown as z.ZodType<ChatView>,
);
const chunks = named<object>("UIMessageChunk", z.object({ type: z.string() }));
const STREAM = eventStream("a chunk of the AI SDK's UI message stream, the last is [DONE]", chunks);

/** Adds the routes for `useChat` of the AI SDK. A chat is a session. */
export function mountChat(app: ServerApp, services: ServerServices, parts: FrontEndParts): void {
  mountStreams(app, services, parts);
  mountSelecting(app, services);
  route(app, {
    method: "get",
    path: "/api/chat/:id",
    operationId: "readChat",
    summary: "The messages of a chat, in the format of the AI SDK.",
    answers: { 200: { description: "The chat.", schema: chatView } },
    handle: async (call) => answer(await readChat(services, call.param("id"), call)),
  });
  route(app, {
    method: "post",
    path: "/api/chat/:id/stop",
    operationId: "stopChat",
    frees: true,
    summary: "Stops the run of a chat; its messages are kept.",
    needs: "run",
    body: stopChat,
    answers: { 204: { description: "The run was cancelled, or none was open." } },
    async handle({ param, body, caller, as }) {
      const head = await visibleHead(services, param("id"), caller);
      const runId = body.runId ?? openRunOf(head)?.runId;
      if (runId !== undefined) await cancelRun(services, param("id"), { runId }, as);
      return noContent();
    },
  });
}

function mountSelecting(app: ServerApp, services: ServerServices): void {
  route(app, {
    method: "post",
    path: "/api/chat/:id/select",
    operationId: "selectBranch",
    summary:
      "Continues a chat on another branch: moves the leaf to the latest leaf below an entry, and returns the messages there. Rejected while a run is open.",
    body: selectBranch,
    answers: { 200: { description: "The chat on that branch.", schema: chatView } },
    async handle(call) {
      const { param, body, caller } = call;
      await (await openTree(services, param("id"), caller)).selectBranch(body.entryId);
      return answer(await readChat(services, param("id"), call));
    },
  });
}

/** Streams a run to the client from its beginning until it ends or waits for approval. */
async function streamChat(
  services: ServerServices,
  feeds: RunFeeds,
  call: RouteCall<unknown, unknown>,
  { head, runId, after }: { readonly head: SessionHead; readonly runId: string; readonly after?: readonly string[] },
): Promise<Response> {
  const answer = new AnswerWriter(
    answerMessageIdOf(messageIdOfRun(runId)),
    after,
    chatBlobUrl(call.request, head.header.id),
  );
  let hasMetadata = false;
  const writer: RunWriter = {
    get ended() {
      return answer.ended;
    },
    async write(fed, { questions }) {
      const events = (fed ?? []).map(({ event }) => event as RunEvent);
      const chunks = answer.take(events, questions);
      const first = hasMetadata ? undefined : fed?.find(({ event }) => event.type === "round-finished");
      if (first !== undefined) {
        hasMetadata = true;
        const messageMetadata = await readMetadata(services, head.header.id, first.seq);
        // The chunk that ends the message is the last one.
        chunks.splice(answer.ended ? -1 : chunks.length, 0, { type: "message-metadata", messageMetadata });
      }
      const lines = chunks.map((chunk) => JSON.stringify(chunk));
      return answer.ended ? [...lines, "[DONE]"] : lines;
    },
  };
  const response = await streamRun(services, feeds, call, { head, runId, writer });
  response.headers.set("x-vercel-ai-ui-message-stream", "v1");
  return response;
}

function mountStreams(app: ServerApp, services: ServerServices, { backlog, feeds }: FrontEndParts): void {
  route(app, {
    method: "post",
    path: "/api/chat",
    operationId: "chat",
    summary: "Sends a message to a chat, or answers its open questions, and streams the response, for the AI SDK.",
    body: chatRequest,
    problems: [503],
    content: true,
    answers: STREAM,
    async handle(call) {
      const { body, caller, as } = call;
      if (services.drain.aborted) throw draining();
      const message = lastMessageOf(body);
      if (message.role === "assistant") {
        const runId = await answerQuestions(services, { sessionId: body.id, answers: message.answers, as });
        const after = message.answers.map(({ question }) => question);
        return streamChat(services, feeds, call, { head: await visibleHead(services, body.id, caller), runId, after });
      }
      checkRight(caller, "run");
      const request = await askedBy(services, await visibleOrNewHead(services, body.id, caller), body, message);
      const { head, runId } = await requestRun(services, backlog, { sessionId: body.id, request, caller });
      return streamChat(services, feeds, call, { head, runId });
    },
  });
  route(app, {
    method: "get",
    path: "/api/chat/:id/stream",
    operationId: "joinChat",
    summary: "Streams the answer in progress in a chat from its beginning, for the AI SDK.",
    answers: { ...STREAM, 204: { description: "No answer is in progress." } },
    async handle(call) {
      const { param, caller } = call;
      if (services.drain.aborted) throw draining();
      const head = await services.manager.head(param("id"), { actor: caller, gather: true });
      const runId = head === null ? null : await runToJoin(services, head);
      return head === null || runId === null ? noContent() : streamChat(services, feeds, call, { head, runId });
    },
  });
}
