import { expect, test } from "vitest";
import { createHeader } from "../../session/log/header.ts";
import { openMemoryStore } from "../memory/index.ts";
import { aggregateSessions } from "./aggregate-sessions.ts";

test("sessions to which nothing was appended since the period began are not read", async () => {
  let now = "2026-05-01T12:00:00.000Z";
  await using store = openMemoryStore({ clock: () => new Date(now) });
  const add = async (id: string, timestamp: string): Promise<void> => {
    if ((await store.head(id)) === null) await store.create(createHeader({ id, createdAt: timestamp }));
    await store.append(id, [{ type: "message", timestamp, message: { role: "user", content: "Hello." } }]);
  };
  await add("old", now);
  await add("both", now);
  // The clock of another machine is ahead by some hours.
  now = "2026-05-09T20:00:00.000Z";
  await add("ahead", "2026-05-10T02:00:00.000Z");
  now = "2026-05-12T12:00:00.000Z";
  await add("both", now);
  const read: string[] = [];
  const watched = new Proxy(store, {
    get: (target, name) => {
      if (name !== "read") return Reflect.get(target, name).bind?.(target) ?? Reflect.get(target, name);
      return (id: string, options: object) => {
        read.push(id);
        return target.read(id, options);
      };
    },
  });
  const [rows] = await aggregateSessions(watched, { from: "2026-05-10T00:00:00.000Z" }, [["day"]]);
  expect(rows?.map(({ day, messages }) => [day, messages])).toEqual([
    ["2026-05-10", 1],
    ["2026-05-12", 1],
  ]);
  expect(read.sort()).toEqual(["ahead", "both"]);
});
