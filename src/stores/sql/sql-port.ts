import type { MaybePromise } from "../../session/store-driver.ts";
import type { Coroutine } from "../rows/coroutine.ts";
import type { RowPort, RowSession } from "../rows/row-port.ts";
import type { Segment } from "../rows/segments.ts";
import type { SqlRunner } from "./sql-database.ts";

/** A session as an SQL store loads it, with the key of its row in `sessions`. */
export interface SqlSession extends RowSession<Segment> {
  readonly key: number;
}

/** A `RowPort` on an SQL database or on one transaction, which lets others run statements in the same transaction. */
export interface SqlPort<Session extends SqlSession> extends RowPort<Segment, Session> {
  readonly runner: SqlRunner;
  locked<T>(work: (port: SqlPort<Session>) => Coroutine<T>): MaybePromise<T>;
}
