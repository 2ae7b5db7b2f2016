import { type MetricsApi, loadMetrics } from "../agent/telemetry.ts";
import type { SessionStore } from "../session/store.ts";

/** The metrics of a worker's runs and of the waiting runs, sent to the program's OpenTelemetry configuration. */
export class WorkerMetrics {
  #takeovers: { add(count: number): void } | null = null;
  #startDelay: { record(seconds: number): void } | null = null;
  #stop: (() => void) | null = null;

  /** `active` returns the number of the worker's runs. Does nothing if OpenTelemetry is not configured. */
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

  /** Counts a run taken over from another worker. */
  tookOver(): void {
    this.#takeovers?.add(1);
  }

  /** Records the start of a run, and the delay since it was requested or could start. */
  began(delayMs: number): void {
    this.#startDelay?.record(delayMs / 1000);
  }

  stop(): void {
    this.#stop?.();
  }
}
