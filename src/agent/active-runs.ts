import { checkCount } from "../stores/complete/valid-arguments.ts";
import { checkArgument, checkOptionsOf } from "../session/check-arguments.ts";
/** A run that is in progress in this process. */
export interface ActiveRun {
  readonly id: string;
  /** Resolves when the run has ended; never rejects. */
  readonly ended: Promise<void>;
  /** Stops the run without recording an end, so that it can be recovered. */
  abandon(): Promise<void>;
  /** Parks the run, now or at its next question, without waiting for answers here. Absent if it cannot park. */
  parkEarly?(): void;
}

const active = new Set<ActiveRun>();

/** Registers a run until it ends. */
export function trackRun(run: ActiveRun): void {
  active.add(run);
  void run.ended.then(() => active.delete(run));
}

/**
 * Waits for the runs of this process, or for those of these ids, before it ends. Runs that do not finish in time are
 * abandoned and can be recovered.
 *
 * @example
 * process.once("SIGTERM", async () => {
 *   const { abandoned } = await drainRuns({ timeoutMs: 5_000 });
 *   console.log("To be recovered:", abandoned);
 * });
 *
 * @returns the ids of the finished and of the abandoned sessions.
 */
export async function drainRuns(
  options: { readonly timeoutMs?: number; readonly ids?: readonly string[] } = {},
): Promise<{ readonly finished: readonly string[]; readonly abandoned: readonly string[] }> {
  checkOptionsOf(options, { timeoutMs: true, ids: true }, "drainRuns");
  const { ids, timeoutMs } = options;
  if (timeoutMs !== undefined) checkCount(timeoutMs, "timeoutMs");
  checkArgument(ids === undefined || Array.isArray(ids), ids, "drainRuns", "a list of session ids");
  const runs = [...active].filter(({ id }) => ids === undefined || ids.includes(id));
  const finished: string[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, timeoutMs ?? 10_000);
  });
  const all = Promise.all(runs.map((run) => run.ended.then(() => finished.push(run.id))));
  await Promise.race([all, late]);
  clearTimeout(timer);
  const done = new Set(finished);
  const abandoned = runs.filter((run) => !done.has(run.id));
  await Promise.all(abandoned.map((run) => run.abandon()));
  return { finished: [...done], abandoned: abandoned.map((run) => run.id) };
}

/** Abandons a run of this process immediately, so that it can be recovered; resolves when it has ended. */
export async function abandonRun(id: string): Promise<void> {
  await Promise.all([...active].filter((run) => run.id === id).map((run) => run.abandon()));
}

/** Lets a run of this process park at its questions without waiting for answers, as the process is about to end. */
export function parkRunEarly(id: string): void {
  for (const run of active) if (run.id === id) run.parkEarly?.();
}
