import { expect, test, vi } from "vitest";
import { asking, callOf, calling, someAgent, toolOf } from "../../test/sample-run.ts";
import { scripted } from "../models/scripted.ts";
import { runSessionCompress } from "./run-session-compress.ts";
import { runSessionLoop } from "./run-session-loop.ts";
import { RunTelemetry } from "./telemetry.ts";

vi.mock("@opentelemetry/api", () => {
  throw new Error("Cannot find package '@opentelemetry/api'");
});

test("runs work without OpenTelemetry", async () => {
  expect(await RunTelemetry.load("a")).toBeNull();
  const model = scripted([calling(callOf("a", "look")), "Done.", "In short."]);
  const session = await runSessionLoop(asking(), someAgent(), {
    model,
    tools: [toolOf("look")],
    telemetry: { contents: true },
  });
  expect(session.text()).toBe("Done.");
  const short = await runSessionCompress(session, someAgent(), { model });
  expect(short.transcript.at(0)?.message.content).toBe("In short.");
});
