import type { Page } from "playwright-core";

/** Sends a message to the agent of the shown session. */
export async function say(page: Page, text: string): Promise<void> {
  await page.getByRole("textbox", { name: "Message" }).fill(text);
  await page.getByRole("button", { name: "Send" }).click();
}

/** Opens another view of the session. */
export async function view(page: Page, name: string): Promise<void> {
  await page.getByRole("navigation", { name: "Views of the session" }).getByRole("link", { name }).click();
}
