import type { Page } from "playwright-core";

/** Says something to the agent of the session that a page shows. */
export async function say(page: Page, text: string): Promise<void> {
  await page.getByRole("textbox", { name: "Message" }).fill(text);
  await page.getByRole("button", { name: "Send" }).click();
}

/** Goes to another view of the session. */
export async function view(page: Page, name: string): Promise<void> {
  await page.getByRole("navigation", { name: "Views of the session" }).getByRole("link", { name }).click();
}
