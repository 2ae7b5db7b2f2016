export { treeNodeOf } from "../tree-node.ts";
export type * from "../run-wire.ts";
export type * from "../tree-wire.ts";
export type * from "../wire.ts";
export { CheckpointsClient } from "./checkpoints-client.ts";
export { ClientError } from "./client-error.ts";
export { Client, type ClientInit, createClient, type SearchOptions } from "./create-client.ts";
export type { EventStream, FollowOptions } from "./event-stream.ts";
export { RunsClient } from "./runs-client.ts";
export {
  type ExportRequest,
  type ListForks,
  type ReadPath,
  SessionsClient,
  type WatchRequest,
} from "./sessions-client.ts";
export type { CallOptions, Fetch, UploadOptions, UploadProgress } from "./transport.ts";
export { type EraseRequest, UsersClient } from "./users-client.ts";
