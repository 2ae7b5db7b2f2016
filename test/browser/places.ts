import type { Page } from "playwright-core";
import type { StudioServer } from "./studio-server.ts";

/** The views of a session, as their URLs name them. */
export const VIEWS: readonly string[] = ["talk", "context", "compare", "checkpoints", "lineage", "group"];

/** The ids of the sample sessions, by name. */
export async function sampleIds({ client }: StudioServer): Promise<(name: string) => string> {
  const { items } = await client.sessions.list();
  return (wanted) => {
    const found = items.find(({ name }) => name === wanted);
    if (found === undefined) throw new Error(`There is no sample session "${wanted}".`);
    return found.header.id;
  };
}

/** Every page of the studio, by its name. */
export async function allPlaces(server: StudioServer): Promise<readonly (readonly [name: string, at: string])[]> {
  const idOf = await sampleIds(server);
  const views = VIEWS.map((view) => [view, `#/sessions/${idOf("Plan a trip")}/${view}`] as const);
  return [
    ["sessions", "#/"],
    ["analytics", "#/analytics"],
    ["questions", "#/questions"],
    ["fleet", "#/fleet"],
    ...views,
    ["a group", `#/sessions/${idOf("A sentence about a cat")}/group`],
    ["a merged session's lineage", `#/sessions/${idOf("A name for the release")}/lineage`],
    ["a merged session's forks", `#/sessions/${idOf("A name for the release")}/compare`],
    ["a compacted context", `#/sessions/${idOf("Notes of a week")}/context`],
    ["an interrupted run", `#/sessions/${idOf("Interrupted in the middle")}/talk`],
  ];
}

/** Opens a page of the studio and waits until nothing is loading. */
export async function goTo(page: Page, { url }: StudioServer, at: string): Promise<void> {
  await page.goto(`${url}/${at}`);
  // Streams stay open, so the network is never idle; the loading notes tell what is pending.
  await page.locator("#root > *").first().waitFor();
  await page
    .getByText(/^Loading /)
    .first()
    .waitFor({ state: "hidden" });
  // Loaded data are rendered with the next frame.
  await page.waitForTimeout(50);
}
