import { z } from "zod";
import { type Entry, isNode } from "../../../session/log/entry.ts";
import { notANode, UnknownEntryError } from "../../../session/errors.ts";
import { NAME_CHARACTERS_MAX } from "../../../session/limits.ts";
import type { SessionStore } from "../../../session/store.ts";
import type { TreeView } from "../../tree-wire.ts";
import type { LabelRequest, LeafRequest, PruneRequest } from "../../wire.ts";
import { readPathAfter, readPathPage } from "../../../tree/path-page.ts";
import { foldTree, readTreeView } from "./read-tree-view.ts";
import { answer, route, type ServerApp } from "../route.ts";
import { id, limit, named, queryFlag, queryList, refuse } from "../schema.ts";
import type { ServerServices } from "../server-services.ts";
import { openTree, readView, visibleHead } from "./session-access.ts";
import { entry, entryPage } from "./entry-schemas.ts";
import { sessionView, treeNode } from "./wire-schemas.ts";

const PAGE_DEFAULT = 100;
const text = z.string();

const treeView = named<TreeView>(
  "Tree",
  z.object({ leafId: text.nullable(), version: z.int(), nodes: z.array(treeNode), activePath: z.array(text) }),
);

const leafRequest = named<LeafRequest>(
  "LeafRequest",
  z.strictObject({ entryId: id.nullable(), summary: text.optional(), latest: z.boolean().optional() }),
);
const labelRequest = named<LabelRequest>(
  "LabelRequest",
  z.strictObject({ label: text.min(1).max(NAME_CHARACTERS_MAX).nullable() }),
);
const pruneRequest = named<PruneRequest>("PruneRequest", z.strictObject({ entryId: id }));
const one = { 200: { description: "The session after the change.", schema: sessionView } };

/** Adds the routes for paths, branches and labels. */
export function mountTree(app: ServerApp, services: ServerServices): void {
  mountReading(app, services);
  mountMoving(app, services);
}

function mountReading(app: ServerApp, services: ServerServices): void {
  const { store } = services;
  route(app, {
    method: "get",
    path: "/api/sessions/:id/path",
    operationId: "readPath",
    summary:
      "A page of the path to a leaf, oldest first: its end, or the entries before or after an entry; pass `next` as `before`, or as `after` if that was given.",
    query: z.strictObject({
      leafId: id.optional(),
      limit: limit.optional(),
      before: id.optional(),
      after: id.optional(),
    }),
    answers: { 200: { description: "The page.", schema: entryPage } },
    async handle({ param, query, caller }) {
      const head = await visibleHead(services, param("id"), caller);
      const { leafId = head.leafId, limit: most = PAGE_DEFAULT, before, after } = query;
      const sessionId = head.header.id;
      if (query.leafId !== undefined) await nodeOf(store, sessionId, query.leafId);
      if (after !== undefined) {
        if (before !== undefined) refuse("query.after", "Give either before or after, not both.");
        const page = await readPathAfter(store, sessionId, {
          leafId,
          after: await nodeOf(store, sessionId, after),
          limit: most,
        });
        return answer({ items: page.items, next: page.more ? page.items.at(-1)?.id : null });
      }
      const from = before === undefined ? leafId : (await nodeOf(store, sessionId, before)).parentId;
      const { items, more } =
        from === null ? { items: [], more: false } : await readPathPage(store, sessionId, from, most);
      return answer({ items, next: more ? items[0]?.id : null });
    },
  });
  route(app, {
    method: "get",
    path: "/api/sessions/:id/tree",
    operationId: "readTree",
    summary:
      "The nodes without their content, and the active path; `folded` leaves out the inside of long chains of nodes.",
    query: z.strictObject({ folded: queryFlag.optional(), keep: queryList(id).optional() }),
    answers: { 200: { description: "The tree.", schema: treeView } },
    async handle({ param, query, caller }) {
      const tree = await readTreeView(store, await visibleHead(services, param("id"), caller));
      return answer(query.folded === true ? foldTree(tree, query.keep) : tree);
    },
  });
}

function mountMoving(app: ServerApp, services: ServerServices): void {
  route(app, {
    method: "post",
    path: "/api/sessions/:id/leaf",
    operationId: "moveLeaf",
    summary:
      "Moves the leaf to a node, to the latest leaf below it, or before the root; a summary of the branch left behind can be appended there.",
    body: leafRequest,
    heavy: true,
    answers: one,
    async handle({ param, body: { entryId, summary, latest }, caller }) {
      const tree = await openTree(services, param("id"), caller);
      if (latest === true) {
        if (entryId === null || summary !== undefined)
          refuse("body.latest", "The latest leaf is below an entry, and is selected without a summary.");
        await tree.selectBranch(entryId);
      } else await (summary === undefined ? tree.branch(entryId) : tree.branchWithSummary(entryId, summary));
      return answer(await readView(services, tree.id, caller));
    },
  });
  route(app, {
    method: "put",
    path: "/api/sessions/:id/labels/:entryId",
    operationId: "setLabel",
    summary: "Sets or removes the label of an entry.",
    body: labelRequest,
    answers: { 200: { description: "The label entry.", schema: entry } },
    async handle({ param, body, caller }) {
      const tree = await openTree(services, param("id"), caller);
      return answer(await tree.setLabel(param("entryId"), body.label));
    },
  });
  route(app, {
    method: "post",
    path: "/api/sessions/:id/prune",
    operationId: "pruneBranch",
    summary: "Hides a side branch for good.",
    body: pruneRequest,
    answers: one,
    async handle({ param, body, caller }) {
      const tree = await openTree(services, param("id"), caller);
      await tree.pruneBranch(body.entryId);
      return answer(await readView(services, tree.id, caller));
    },
  });
}

/** The position of a node in the tree; its content is not kept in memory. */
async function nodeOf(store: SessionStore, sessionId: string, entryId: string): Promise<NodePosition> {
  const found = await store.getEntry(sessionId, entryId);
  if (found === null) throw new UnknownEntryError(sessionId, entryId);
  if (!isNode(found)) throw notANode(sessionId, entryId);
  const { id: nodeId, seq, parentId } = found;
  return { id: nodeId, seq, parentId };
}

type NodePosition = Pick<Entry, "id" | "seq" | "parentId">;
