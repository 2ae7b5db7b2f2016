import { expect, test } from "vitest";
import { modelOf, saying } from "../../../test/sample-run.ts";
import type { Message } from "../../session/message.ts";
import { Transcript } from "../../session/value/transcript.ts";
import { LoopContext } from "../context/loop-context.ts";
import { EventLog } from "../event-log.ts";
import type { RunLog } from "../persist/run-log.ts";
import { askModel } from "./ask-model.ts";

const picture: Message = {
  role: "user",
  content: [{ type: "image", mediaType: "image/png", blob: `sha256:${"0".repeat(64)}`, bytes: 1 }],
};

test("a request whose messages refer to no blobs does not put them together, so that a round costs the same at any length", async () => {
  let reads = 0;
  const request = {
    get messages(): readonly Message[] {
      reads += 1;
      return [{ role: "user", content: "Hi." }];
    },
  };
  const events = new EventLog({ runId: "r", listener: undefined, report: () => {}, position: () => -1 });
  const log = { signal: new AbortController().signal, events, blobPlace: null } as unknown as RunLog;
  const asking = { options: { model: modelOf(async () => saying("Hello.")) }, log, telemetry: null, round: 1 };
  expect(await askModel(request, { ...asking, hasBlobs: false })).toMatchObject({ content: "Hello." });
  expect(reads).toBe(0);
  await askModel(request, asking);
  expect(reads).toBe(1);
});

test("a context knows whether a message refers to blobs: of the agent, of the past, and of the run", () => {
  const past = Transcript.of([{ message: { role: "user", content: "Hi." } }]);
  expect(new LoopContext([picture], past).refersToBlobs).toBe(true);
  expect(new LoopContext([], past.append({ message: picture })).refersToBlobs).toBe(true);
  const context = new LoopContext([], past);
  expect(context.refersToBlobs).toBe(false);
  const [row] = Transcript.of([{ message: picture }]);
  context.push(row as NonNullable<typeof row>);
  expect(context.refersToBlobs).toBe(true);
  context.reset(past);
  expect(context.refersToBlobs).toBe(false);
});
