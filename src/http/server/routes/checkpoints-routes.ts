import { z } from "zod";
import type { JsonObject } from "../../../internal/json.ts";
import { CheckpointManager } from "../../../lifecycle/checkpoints/checkpoint-manager.ts";
import {
  checkpointWithFiles,
  restoreWithFiles,
  type SessionFilesOptions,
} from "../../../lifecycle/checkpoints/session-files.ts";
import { stricterPlacement } from "../../../sandboxes/stricter-spec.ts";
import { CheckpointNotFoundError } from "../../../session/errors.ts";
import type { FileChanges } from "../../../session/sandbox/sandbox.ts";
import { StateDiff } from "../../../session/state/state-diff.ts";
import { encodeSegment } from "../../path-segment.ts";
import type { CheckpointTimeline, TreeNodeView } from "../../tree-wire.ts";
import type { CheckpointDiff, CheckpointList, NewCheckpoint, RestoredSession, RestoreRequest } from "../../wire.ts";
import { checkRight } from "../gate/authenticator.ts";
import { WHOLE_CHARACTERS_MAX } from "./answer-bytes.ts";
import { answer, noContent, route, type ServerApp } from "../route.ts";
import { jsonObject, limit, named, queryFlag, refuse } from "../schema.ts";
import type { ServerServices } from "../server-services.ts";
import { readView, visibleCheckpoint, visibleHead } from "./session-access.ts";
import { checkpoint, timelineCheckpoint, restoredSession } from "./wire-schemas.ts";
import { nextSlice } from "../../../internal/long-work.ts";
import { entryCharacters } from "../../../session/log/entry.ts";
import type { SessionHead } from "../../../session/log/fold.ts";
import type { SessionStore } from "../../../session/store.ts";
import { walkUp } from "../../../tree/path-reader.ts";
import { treeNodeOf } from "../../tree-node.ts";

const newCheckpoint = named<NewCheckpoint>(
  "NewCheckpoint",
  z.strictObject({ metadata: jsonObject.optional(), files: z.boolean().optional() }),
);
const restoreRequest = named<RestoreRequest>("RestoreRequest", z.strictObject({ files: z.boolean().optional() }));
const checkpointList = named<CheckpointList>("CheckpointList", z.object({ items: z.array(checkpoint) }));

const timeline = named<CheckpointTimeline>(
  "CheckpointTimeline",
  z.object({ items: z.array(timelineCheckpoint), total: z.int() }),
);
const TIMELINE_DEFAULT = 100;

const fileChanges = named<FileChanges>(
  "FileChanges",
  z.object({
    changes: z.array(
      z.object({
        path: z.string(),
        change: z.enum(["added", "removed", "changed"]),
        before: z.string().optional(),
        after: z.string().optional(),
      }),
    ),
    truncated: z.boolean(),
  }),
);

const checkpointDiff = named<CheckpointDiff>(
  "CheckpointDiff",
  z.object({
    from: checkpoint,
    to: checkpoint,
    state: jsonObject,
    files: fileChanges.nullable(),
  }),
);

/** Adds the routes for checkpoints. */
export function mountCheckpoints(app: ServerApp, services: ServerServices): void {
  mountOfSession(app, services);
  mountOne(app, services);
  mountRestoring(app, services);
  mountComparing(app, services);
}

function mountOfSession(app: ServerApp, services: ServerServices): void {
  const { manager, store } = services;
  const placeOf = placeIn(services);
  route(app, {
    method: "get",
    path: "/api/sessions/:id/checkpoints",
    operationId: "listCheckpoints",
    summary: "The checkpoints of a session, oldest first.",
    answers: { 200: { description: "The checkpoints.", schema: checkpointList } },
    async handle({ param, caller }) {
      const { header } = await visibleHead(services, param("id"), caller);
      return answer({ items: await store.listCheckpoints(header.id) });
    },
  });
  route(app, {
    method: "get",
    path: "/api/sessions/:id/timeline",
    operationId: "readTimeline",
    summary: "The latest checkpoints of a session, the latest first, each with its node in the tree.",
    query: z.strictObject({ limit: limit.optional() }),
    answers: { 200: { description: "The checkpoints.", schema: timeline } },
    async handle({ param, query, caller }) {
      const head = await visibleHead(services, param("id"), caller);
      return answer(await readTimeline(store, head, query.limit ?? TIMELINE_DEFAULT));
    },
  });
  route(app, {
    method: "post",
    path: "/api/sessions/:id/checkpoints",
    operationId: "createCheckpoint",
    summary:
      "Makes a checkpoint of the session's current position; with `files`, it also holds the files of the session's place.",
    body: newCheckpoint,
    problems: [502],
    answers: { 201: { description: "The checkpoint.", schema: checkpoint } },
    async handle({ param, body: { files, ...init }, caller, as }) {
      if (files === true) checkRight(caller, "files");
      const made = await (files === true
        ? checkpointWithFiles(manager, param("id"), { ...init, ...as, placeOf })
        : manager.checkpoint(param("id"), { ...init, ...as }));
      const headers = { location: `/api/checkpoints/${encodeSegment(made.id)}` };
      return answer(made, { status: 201, headers });
    },
  });
}

function mountOne(app: ServerApp, services: ServerServices): void {
  const { store } = services;
  const checkpoints = new CheckpointManager(store);
  route(app, {
    method: "get",
    path: "/api/checkpoints/:checkpointId",
    operationId: "getCheckpoint",
    summary: "One checkpoint.",
    answers: { 200: { description: "The checkpoint.", schema: checkpoint } },
    handle: async ({ param, caller }) => answer(await visibleCheckpoint(services, param("checkpointId"), caller)),
  });
  route(app, {
    method: "delete",
    path: "/api/checkpoints/:checkpointId",
    operationId: "deleteCheckpoint",
    summary: "Deletes a checkpoint with its files.",
    problems: [502],
    answers: { 204: { description: "The checkpoint is deleted." } },
    async handle({ param, caller }) {
      const { id, sandboxSnapshot } = await visibleCheckpoint(services, param("checkpointId"), caller);
      if (sandboxSnapshot !== undefined) checkRight(caller, "files");
      if (!(await checkpoints.delete(id))) throw new CheckpointNotFoundError(id);
      return noContent();
    },
  });
}

function mountRestoring(app: ServerApp, services: ServerServices): void {
  const { manager } = services;
  const placeOf = placeIn(services);
  route(app, {
    method: "post",
    path: "/api/checkpoints/:checkpointId/restore",
    operationId: "restoreCheckpoint",
    summary: "Moves the session's leaf back to the checkpoint, with `files` also its files; no entry is deleted.",
    body: restoreRequest,
    problems: [502],
    answers: { 200: { description: "The session after the restore.", schema: restoredSession } },
    async handle({ param, body: { files = false }, caller, as }) {
      if (files) checkRight(caller, "files");
      const id = param("checkpointId");
      const { state, kept } = files
        ? await restoreWithFiles(manager, id, { ...as, placeOf })
        : { state: await manager.restore(id, { ...as, turns: false }), kept: null };
      const view = await readView(services, state.sessionId, caller);
      return answer({ ...view, kept } satisfies RestoredSession);
    },
  });
}

function mountComparing(app: ServerApp, services: ServerServices): void {
  const checkpoints = new CheckpointManager(services.store);
  route(app, {
    method: "get",
    path: "/api/checkpoints/:from/diff/:to",
    operationId: "compareCheckpoints",
    summary: "The differences between two checkpoints of a session; `files=false` leaves out their files.",
    query: z.strictObject({ files: queryFlag.optional() }),
    problems: [502],
    answers: { 200: { description: "The differences.", schema: checkpointDiff } },
    async handle({ param, query, caller }) {
      if (query.files !== false) checkRight(caller, "files");
      const from = await visibleCheckpoint(services, param("from"), caller);
      const to = await visibleCheckpoint(services, param("to"), caller);
      if (from.sessionId !== to.sessionId) refuse("path.to", "The two checkpoints belong to different sessions.");
      const within = { charactersMax: WHOLE_CHARACTERS_MAX / 2 };
      const states = [await checkpoints.restore(from.id, within), await checkpoints.restore(to.id, within)] as const;
      const diff = StateDiff.compute(...states);
      const files = query.files === false ? null : await checkpoints.compareFiles(from.id, to.id);
      return answer({ from, to, state: diff as unknown as JsonObject, files } satisfies CheckpointDiff);
    },
  });
}

/** The place whose files a checkpoint holds: the place where the session's tools act. */
function placeIn({ placeOf }: ServerServices): SessionFilesOptions["placeOf"] {
  return ({ sandbox, userId }) => stricterPlacement(placeOf(userId), sandbox);
}

/** The latest checkpoints of a session with their nodes in the tree. Walks up the active path as far as the earliest of them. */
async function readTimeline(
  store: SessionStore,
  { header: { id }, leafId }: SessionHead,
  limit: number,
): Promise<CheckpointTimeline> {
  const all = await store.listCheckpoints(id);
  const latest = all.slice(-limit).reverse();
  const leaves = [...new Set(latest.map((one) => one.leafId))].filter((leaf) => leaf !== null);
  const nodes = new Map<string, TreeNodeView | null>();
  let earliest = Number.POSITIVE_INFINITY;
  // Reads one entry at a time: each may be large, and only little of it is kept.
  for (const leaf of leaves) {
    const entry = await store.getEntry(id, leaf);
    if (entry === null) continue;
    nodes.set(entry.id, treeNodeOf(entry));
    earliest = Math.min(earliest, entry.seq);
    await nextSlice(entryCharacters(entry));
  }
  const steps = new Map<string, number>();
  if (leafId !== null && nodes.size > 0) {
    for await (const entry of walkUp(store, id, leafId)) {
      if (entry.seq < earliest) break;
      steps.set(entry.id, steps.size);
    }
  }
  const items = latest.map((one) => ({
    ...one,
    node: nodes.get(one.leafId ?? "") ?? null,
    stepsBack: steps.get(one.leafId ?? "") ?? null,
  }));
  return { items, total: all.length };
}
