import { expect, test } from "vitest";
import { emptyHead } from "../../session/log/fold.ts";
import { createHeader } from "../../session/log/header.ts";
import { listPage } from "./list-page.ts";
import { ScannedListing } from "./scanned-listing.ts";

test("a listing by open runs scans only the sessions that have some", async () => {
  const parts: string[] = [];
  const listing = new ScannedListing(async (_deleted, part) => {
    parts.push(part);
    return { sessions: [], damaged: [] };
  });
  await listPage(listing, { runs: "requested" }, 10, null);
  await listing.count({ dueBefore: "2026-01-01T00:00:00.000Z" });
  expect(parts.toSorted()).toEqual(["with open runs", "with open runs"]);
});

test("a page of a scanned listing scans all sessions once, and once more for the damaged ones", async () => {
  const heads = Array.from({ length: 500 }, () => emptyHead(createHeader({})));
  let scans = 0;
  const listing = new ScannedListing(async () => {
    scans++;
    return { sessions: heads.map((head) => ({ head, isHeld: () => false })), damaged: [] };
  });
  expect((await listPage(listing, {}, 400, null)).items).toHaveLength(400);
  expect(scans).toBe(2);
  expect((await listPage(listing, { userId: "nobody" }, 400, null)).items).toHaveLength(0);
  expect(scans).toBe(3);
});
