import fc from "fast-check";
import { expect, test } from "vitest";
import { KeptOutput, OUTPUT_BYTES_MAX } from "./kept-output.ts";

const LINE = /\n\[(\d+) bytes were left out here\]\n/;

test("keeps all output that fits, in chunks of any size", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 20 }), { maxLength: 20 }), (chunks) => {
      const bytes = Buffer.concat(chunks);
      const output = new KeptOutput(Math.max(bytes.length, 1));
      for (const chunk of chunks) output.write(chunk);
      expect(output.truncated).toBe(false);
      expect(output.text()).toBe(bytes.toString("utf8"));
    }),
    { numRuns: 100 },
  );
});

test("keeps the beginning and the end of longer output, cut between characters, and counts the rest", () => {
  const text = fc.string({ unit: "binary", minLength: 1, maxLength: 120 });
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 50 }), (whole, bytesMax, step) => {
      const bytes = Buffer.from(whole);
      const output = new KeptOutput(bytesMax);
      for (let at = 0; at < bytes.length; at += step) output.write(bytes.subarray(at, at + step));
      expect(output.truncated).toBe(bytes.length > bytesMax);
      if (!output.truncated) {
        expect(output.text()).toBe(whole);
        return;
      }
      const kept = output.text();
      const [line, count] = LINE.exec(kept) as RegExpExecArray;
      const at = kept.indexOf(line);
      const [head, tail] = [kept.slice(0, at), kept.slice(at + line.length)];
      expect(whole.startsWith(head) && whole.endsWith(tail)).toBe(true);
      const keptBytes = Buffer.byteLength(head) + Buffer.byteLength(tail);
      expect(keptBytes + Number(count)).toBe(bytes.length);
      expect(keptBytes).toBeLessThanOrEqual(bytesMax);
      // At most one incomplete character is dropped at either side.
      expect(keptBytes).toBeGreaterThan(bytesMax - 7);
    }),
    { numRuns: 150 },
  );
});

test("keeps 256 KiB by default", () => {
  const output = new KeptOutput();
  output.write(new Uint8Array(OUTPUT_BYTES_MAX).fill(97));
  expect([OUTPUT_BYTES_MAX, output.truncated, output.text().length]).toEqual([262_144, false, 262_144]);
  output.write(Uint8Array.of(98));
  expect(output.text()).toBe(`${"a".repeat(131_072)}\n[1 bytes were left out here]\n${"a".repeat(131_071)}b`);
});
