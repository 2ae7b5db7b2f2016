import fc from "fast-check";
import type { ModelDraft, ModelQuery, Request, StoreModel } from "./model.ts";

/** The operation that all processes start at the same time. */
export type Race = "append" | "create" | "delete" | "lease";

// Some ids repeat. A number is later replaced by the id of an entry that exists at that time, or by an unknown id.
const id = fc
  .oneof({ weight: 6, arbitrary: fc.nat(1_000_000) }, { weight: 2, arbitrary: fc.nat(9) })
  .map((n) => `e${n}`);
const text = fc.constantFrom("one", "two", "one two");
const entry = fc.nat(200);
// From a range so large that times do not repeat.
const time = fc.nat(1_000_000_000).map((n) => new Date(Date.UTC(2024, 1) + n).toISOString());
const typed = <const Type extends string, T>(type: Type, value: fc.Arbitrary<T>) =>
  fc.record({ id, type: fc.constant(type), value, timestamp: time });
const draft = fc.oneof(
  { weight: 5, arbitrary: typed("message", text) },
  { weight: 2, arbitrary: typed("leaf", fc.option(entry)) },
  { weight: 1, arbitrary: typed("label", entry) },
  { weight: 1, arbitrary: typed("session_info", text) },
  { weight: 1, arbitrary: typed("status", fc.constantFrom("active", "closed")) },
);
const session = fc.oneof(fc.nat(3), fc.nat(9)).map((n) => `s${n}`);
const checkpointId = fc.nat(5).map((n) => `c${n}`);
const position = fc.integer({ min: -1, max: 40 });
const sometimes = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined, freq: 2 });
const query: fc.Arbitrary<ModelQuery> = fc.oneof(
  fc.constant({}),
  fc.constant({ deleted: true as const }),
  fc.record({ userId: fc.constantFrom("ann", "bob") }),
  fc.record({ status: fc.constantFrom("active" as const, "closed" as const) }),
  fc.record({ parentId: session }),
);
const kind = <const Kind extends string>(name: Kind): fc.Arbitrary<Kind> => fc.constant(name);
const about = <const Kind extends string>(...names: readonly Kind[]) =>
  fc.record({ kind: fc.constantFrom(...names), session });

const asked = fc.oneof(
  {
    weight: 16,
    arbitrary: fc.record({
      kind: kind("append"),
      session,
      drafts: fc.array(draft, { minLength: 1, maxLength: 4 }),
      where: fc.constantFrom("leaf", "leaf", "onto", "below"),
      at: fc.option(entry),
      expected: fc.constantFrom(undefined, undefined, undefined, 0, 1),
      held: sometimes(fc.nat(9)),
      twice: fc.boolean(),
    }),
  },
  { weight: 6, arbitrary: fc.record({ kind: kind("fork"), session, to: session, at: sometimes(fc.option(entry)) }) },
  { weight: 4, arbitrary: about("create", "create", "delete", "undelete") },
  { weight: 1, arbitrary: fc.record({ kind: kind("purge") }) },
  { weight: 4, arbitrary: about("lease", "lease", "leaseOf") },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constantFrom("renew", "renew", "release", "restore"), held: fc.nat(9) }),
  },
  { weight: 2, arbitrary: about("head", "checkpoints") },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: kind("read"),
      session,
      range: fc.record({ after: position, before: position, limit: fc.nat(10), reverse: fc.boolean() }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: kind("entry"), session, at: entry }) },
  { weight: 3, arbitrary: fc.record({ kind: kind("list"), query, limit: fc.integer({ min: 1, max: 4 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: kind("count"), query }) },
  { weight: 3, arbitrary: fc.record({ kind: kind("search"), text: fc.constantFrom("one", "two", "one two", "s1") }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: kind("saveCheckpoint"),
      checkpoint: fc.record({ id: checkpointId, session, createdAt: time, note: text }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom("loadCheckpoint", "deleteCheckpoint"), id: checkpointId }),
  },
  { weight: 1, arbitrary: fc.record({ kind: kind("reopen") }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: kind("race"),
      to: fc.constantFrom<Race>("append", "append", "create", "delete", "lease"),
      session,
      timestamp: time,
    }),
  },
);

/** A random operation and the number of the process that executes it. */
export const operation = fc.record({ process: fc.nat(2), asked });

type Asked = (typeof asked extends fc.Arbitrary<infer T> ? T : never) & { readonly kind: string };

/** The requests of an operation, with numbers replaced by existing ids. Empty if the operation does not apply now. */
export function requestOf(
  model: StoreModel,
  process: number,
  each: Exclude<Asked, { kind: "reopen" | "race" }>,
): Request[] {
  switch (each.kind) {
    case "append":
      return [appendOf(model, process, each)];
    case "fork": {
      const { kind, session, to, at } = each;
      return [{ kind, session, to, at: typeof at === "number" ? model.idAt(session, at) : at }];
    }
    case "entry":
      return [{ kind: "entry", session: each.session, entry: model.idAt(each.session, each.at) }];
    case "renew":
    case "release":
    case "restore": {
      const session = model.heldBy(process, each.held);
      if (session === null) return [];
      // An undeleted session has no lease.
      if (each.kind === "restore") return [ask("delete", session), ask("undelete", session), ask("renew", session)];
      return [ask(each.kind, session)];
    }
    default:
      return [each as Request];
  }
}

function ask(kind: "delete" | "undelete" | "renew" | "release", session: string): Request {
  return { kind, session };
}

function appendOf(model: StoreModel, process: number, each: Extract<Asked, { kind: "append" }>): Request {
  const held = each.held === undefined ? null : model.heldBy(process, each.held);
  const session = held ?? each.session;
  const idOf = (n: number | null): string | null => (n === null ? null : model.idAt(session, n));
  const drafts = each.drafts.map(({ value, ...rest }): ModelDraft => {
    return { ...rest, value: typeof value === "number" ? idOf(value) : value };
  });
  const options = {
    ...(each.where !== "leaf" && { [each.where]: idOf(each.at) }),
    ...(each.expected !== undefined && { expectedVersion: model.versionOf(session) + each.expected }),
  };
  return { kind: "append", session, drafts, options, leased: held !== null };
}
