import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ReaderCounts } from "./run-feeds.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("a run is cancelled when the last reader has left and none came back in time", () => {
  const stop = vi.fn();
  const readers = new ReaderCounts(1000);
  const [first, second] = [readers.join("run", stop), readers.join("run", stop)];
  first(true);
  vi.advanceTimersByTime(5000);
  second(true);
  vi.advanceTimersByTime(900);
  const third = readers.join("run", stop);
  vi.advanceTimersByTime(5000);
  expect(stop).not.toHaveBeenCalled();
  third(true);
  readers.join("another run", stop);
  vi.advanceTimersByTime(1000);
  expect(stop).toHaveBeenCalledTimes(1);
});

test("a reader that has read everything no longer counts, and has not left", () => {
  const stop = vi.fn();
  const readers = new ReaderCounts(1000);
  readers.join("run", stop)(false);
  vi.runAllTimers();
  expect(stop).not.toHaveBeenCalled();
  readers.join("run", stop)(true);
  vi.runAllTimers();
  expect(stop).toHaveBeenCalledTimes(1);
});

test("without a time limit, leaving readers cancel nothing", () => {
  const stop = vi.fn();
  new ReaderCounts(null).join("run", stop)(true);
  vi.runAllTimers();
  expect(stop).not.toHaveBeenCalled();
});
