import type { FleetView } from "skein/client";
import { formatCount } from "../sessions/list/amounts.ts";

/** The fleet in two or three sentences, whose numbers are those of the lists below them. */
export function fleetSummary({ workers, waiting, requested, interrupted }: FleetView): string {
  const active = workers.reduce((sum, worker) => sum + worker.active, 0);
  const room = workers.reduce((sum, worker) => sum + worker.concurrency, 0);
  const shown = [...requested.items, ...interrupted.items];
  const more = (requested.next ?? interrupted.next) !== null;
  const sessions = new Set(shown.map(({ sessionId }) => sessionId)).size;
  // Of other users, only the number is known; where pages follow, these may be among them.
  const others = more ? 0 : waiting - sessions;
  return [
    // Without workers, the list of workers says so.
    ...(workers.length === 0 ? [] : [`${workersHave(workers.length, active, room)}.`]),
    `${runsWait(shown.length, more)}.`,
    ...(others > 0
      ? [`${counted(others, "more session has a run that waits", "more sessions have runs that wait")}.`]
      : []),
  ].join(" ");
}

function workersHave(count: number, active: number, room: number): string {
  const who = counted(count, "worker has", "workers have");
  if (active === 0) return `${who} no run, and room for ${formatCount(room)}`;
  return `${who} ${counted(active, "run", "runs")}, and room for ${formatCount(Math.max(0, room - active))} more`;
}

function runsWait(count: number, more: boolean): string {
  if (count === 0) return "No run waits";
  return more ? `More than ${counted(count, "run waits", "runs wait")}` : counted(count, "run waits", "runs wait");
}

function counted(count: number, one: string, many: string): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}
