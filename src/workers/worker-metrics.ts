import { type MetricsApi, loadMetrics } from "../agent/telemetry.ts";
import type { SessionStore } from "../session/store.ts";

/** What is measured of the runs of a worker, and of what waits for one. It goes where the program's OpenTelemetry sends it. */
export class WorkerMetrics {
  #takeovers: { add(count: number): void } | null = null;
  #startDelay: { record(seconds: number): void } | null = null;
  #stop: (() => void) | null = null;

  /** `active` says how many runs the worker has. Nothing is measured where OpenTelemetry is not set up. */
  async start(store: SessionStore, active: () => number): Promise<void> {
    const api: MetricsApi | null = await loadMetrics();
    if (api === null) return;
    const meter = api.getMeter("skein");
    this.#takeovers = meter.createCounter("skein.runs.takeovers", { unit: "{run}" });
    this.#startDelay = meter.createHistogram("skein.runs.start_delay", { unit: "s" });
    const gauges = [
      ["skein.runs.waiting", () => store.count({ dueBefore: new Date().toISOString() })],
      ["skein.runs.active", async () => active()],
      ["skein.runs.asking", () => store.count({ runs: "asking" })],
    ] as const;
    const stops = gauges.map(([name, count]) => {
      const gauge = meter.createObservableGauge(name, { unit: "{run}" });
      const observe = async (result: { observe(value: number): void }): Promise<void> => result.observe(await count());
      gauge.addCallback(observe);
      return () => gauge.removeCallback(observe);
    });
    this.#stop = () => {
      for (const stop of stops) stop();
    };
  }

  /** A run that another had goes on here. */
  tookOver(): void {
    this.#takeovers?.add(1);
  }

  /** A run has begun, so long after it was asked for or could begin. */
  began(delayMs: number): void {
    this.#startDelay?.record(delayMs / 1000);
  }

  stop(): void {
    this.#stop?.();
  }
}
