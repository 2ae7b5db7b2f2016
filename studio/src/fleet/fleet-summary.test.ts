import type { FleetView } from "skein/client";
import { expect, test } from "vitest";
import { fleetSummary } from "./fleet-summary.ts";

const worker = (active: number) => ({ active, concurrency: 4 }) as FleetView["workers"][number];
const page = (...sessionIds: readonly string[]) =>
  ({ items: sessionIds.map((sessionId) => ({ sessionId })), next: null }) as unknown as FleetView["requested"];
const fleet = (given: Partial<FleetView>): FleetView => ({
  workers: [],
  waiting: 0,
  requested: page(),
  interrupted: page(),
  ...given,
});

test("says how many runs the lists below show, interrupted ones and later ones included", () => {
  expect(fleetSummary(fleet({}))).toBe("No run waits.");
  expect(fleetSummary(fleet({ workers: [worker(0)], interrupted: page("a") }))).toBe(
    "1 worker has no run, and room for 4. 1 run waits.",
  );
  expect(
    fleetSummary(
      fleet({ workers: [worker(1), worker(2)], waiting: 1, requested: page("a", "a"), interrupted: page("b") }),
    ),
  ).toBe("2 workers have 3 runs, and room for 5 more. 3 runs wait.");
});

test("counts the sessions of other users, of which only the number is known", () => {
  expect(fleetSummary(fleet({ waiting: 3, requested: page("a") }))).toBe(
    "1 run waits. 2 more sessions have runs that wait.",
  );
});
