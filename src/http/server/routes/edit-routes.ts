import { z } from "zod";
import { defined } from "../../../internal/defined.ts";
import type { EntryOf } from "../../../session/log/entry.ts";
import type { Message } from "../../../session/message.ts";
import type { EditPreview } from "../../../session/context/edits.ts";
import type { EditRequest, EditView, UndoEditRequest } from "../../wire.ts";
import { answer, route, type ServerApp } from "../route.ts";
import { id, jsonObject, named } from "../schema.ts";
import type { ServerServices } from "../server-services.ts";
import { entry } from "./entry-schemas.ts";
import { openTree } from "./session-access.ts";

const text = z.string();
const whole = z.int();

const edited = named<EditView>(
  "EditResult",
  z.object({ entry: entry as unknown as z.ZodType<EntryOf<"context_edit">> }),
);
const preview = named<EditPreview>("EditPreview", z.object({ tokensSaved: whole, prefixLost: whole.min(0) }));

/** The message is checked by the append, like that of an entry. */
const replacement = jsonObject.nullable().optional() as unknown as z.ZodType<Message | null | undefined>;
const editRequest = named<EditRequest>(
  "EditRequest",
  z.strictObject({ entryId: id, message: replacement, reason: text.optional() }) as unknown as z.ZodType<EditRequest>,
);
const previewRequest = named<Omit<EditRequest, "reason">>(
  "EditPreviewRequest",
  z.strictObject({ entryId: id, message: replacement }) as unknown as z.ZodType<Omit<EditRequest, "reason">>,
);
const undoRequest = named<UndoEditRequest>("UndoEditRequest", z.strictObject({ editId: id }));

/** Adds the routes that edit what models see of a session. */
export function mountEdits(app: ServerApp, services: ServerServices): void {
  route(app, {
    method: "post",
    path: "/api/sessions/:id/edits",
    operationId: "editContext",
    summary:
      "Leaves an entry out of what models see, or puts a message in its place, from here on. The log keeps what was said.",
    body: editRequest,
    answers: { 200: { description: "The edit.", schema: edited } },
    async handle({ param, body, caller }) {
      const tree = await openTree(services, param("id"), caller);
      const { entryId, message, reason } = body;
      const why = defined({ reason });
      return answer({
        entry: message == null ? await tree.omit(entryId, why) : await tree.replace(entryId, message, why),
      });
    },
  });
  route(app, {
    method: "post",
    path: "/api/sessions/:id/edits/preview",
    operationId: "previewEdit",
    summary:
      "How many tokens an edit, or the undoing of one, would save in each later request, and how many a provider's cache would read anew once. Changes nothing.",
    body: previewRequest,
    heavy: true,
    answers: { 200: { description: "Both numbers.", schema: preview } },
    async handle({ param, body, caller }) {
      const tree = await openTree(services, param("id"), caller);
      return answer(await tree.previewEdit(body.entryId, body.message));
    },
  });
  route(app, {
    method: "post",
    path: "/api/sessions/:id/undo-edit",
    operationId: "undoEdit",
    summary: "Takes an edit back: models see again what was said.",
    body: undoRequest,
    answers: { 200: { description: "The entry that undoes the edit.", schema: edited } },
    async handle({ param, body, caller }) {
      const tree = await openTree(services, param("id"), caller);
      return answer({ entry: await tree.undoEdit(body.editId) });
    },
  });
}
