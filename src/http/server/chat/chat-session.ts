import { defined } from "../../../internal/defined.ts";
import { uuidv7 } from "../../../internal/uuid.ts";
import type { EntryOf } from "../../../session/log/entry.ts";
import type { SessionHead } from "../../../session/log/fold.ts";
import type { SessionStore } from "../../../session/store.ts";
import { walkUp } from "../../../tree/path-reader.ts";
import { readSiblings, readSiblingsOf } from "../../../tree/read-siblings.ts";
import type { ChatRequest, ChatView } from "../../chat-wire.ts";
import { messageIdOf } from "../../shown-turn.ts";
import { mountedAt } from "../../handler-of.ts";
import { toUIMessages, type UIMessageMetadata } from "../../ui/to-ui-messages.ts";
import type { BlobUrl } from "../../ui/ui-parts.ts";
import type { AskedRun } from "../runs/request-run.ts";
import { openRunOf, readRun } from "../runs/run-views.ts";
import { readSoFar } from "../runs/so-far.ts";
import type { RouteCall } from "../route.ts";
import { blobPath, withBlobSizes } from "../routes/blob-routes.ts";
import type { ServerServices } from "../server-services.ts";
import type { ChatMessage } from "./chat-message.ts";

/**
 * The run that a user's message requests: a new one, another answer to the same message, or an answer to the edited
 * message.
 */
export async function askedBy(
  { store }: ServerServices,
  head: SessionHead,
  { trigger, messageId, agent, model }: ChatRequest,
  { id: said, content }: Extract<ChatMessage, { role: "user" }>,
): Promise<AskedRun> {
  const regenerates = trigger === "regenerate-message";
  const isAgain = regenerates || messageId !== undefined;
  const run = { ...defined({ agent, model }), runId: isAgain ? `${said}~${uuidv7()}` : said };
  const before = isAgain ? await findSaid(store, head, said) : null;
  const input = await withBlobSizes(store, head.header.id, content);
  // If the first request was refused, a retry makes it again.
  if (before === null) return { ...run, input };
  return regenerates ? { ...run, input: [], from: before.id } : { ...run, input, from: before.parentId };
}

/** Finds a user's message on the active path by the id that a front end uses; null if it is not there. */
async function findSaid(
  store: SessionStore,
  { header, leafId }: SessionHead,
  messageId: string,
): Promise<EntryOf<"message"> | null> {
  if (leafId === null) return null;
  for await (const entry of walkUp(store, header.id, leafId)) {
    const isUsers = entry.type === "message" && entry.message.role === "user";
    if (isUsers && messageIdOf(entry.id) === messageId) return entry;
  }
  return null;
}

/** The metadata of an answer that begins at a position of the log. Reads the log from the question on. */
export async function readMetadata(
  { store }: ServerServices,
  sessionId: string,
  seq: number,
): Promise<UIMessageMetadata | undefined> {
  for await (const entry of store.read(sessionId, { after: seq - 1, before: seq + 1 })) {
    return { skein: { entryId: entry.id, siblings: await readSiblingsOf(store, sessionId, entry) } };
  }
  return undefined;
}

/** The messages of a chat; none if the chat could be created here. */
export async function readChat(
  services: ServerServices,
  id: string,
  { caller, request }: Pick<RouteCall<unknown, unknown>, "caller" | "request">,
): Promise<ChatView> {
  const { head, turns } = await readSoFar(services, id, caller);
  const run = head && openRunOf(head);
  const questions = head && run ? (await readRun(services, head, run.runId)).questions : [];
  const siblings = head === null ? new Map() : await readSiblings(services.store, head);
  return { id, messages: toUIMessages(turns, { questions, siblings, blobUrl: chatBlobUrl(request, id) }) };
}

/** The URLs of a chat's images and files, below the path at which the application has mounted the chat routes. */
export function chatBlobUrl(request: Request, id: string): BlobUrl {
  const base = mountedAt(request) ?? "/api/chat";
  return (blob, mediaType) => blobPath(base, id, blob, mediaType);
}
