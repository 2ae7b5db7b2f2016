import { expect } from "vitest";
import { seriousFindings } from "./axe.ts";
import { browserTest } from "./browser-test.ts";
import { pictureWidth, samplePicture } from "./sample-picture.ts";

browserTest(
  "files are attached with their progress, sent, and shown again after a reload",
  async ({ open, server }) => {
    const { header } = await server.client.sessions.create({ name: "Files" });
    const page = await open({ at: `#/sessions/${header.id}/talk` });
    const form = page.getByRole("form", { name: "Message" });
    await form.getByLabel("Files", { exact: true }).setInputFiles([
      { name: "stripes.png", mimeType: "image/png", buffer: samplePicture() },
      {
        name: "notes.svg",
        mimeType: "image/svg+xml",
        buffer: Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'/>"),
      },
    ]);
    const list = form.getByRole("list", { name: "Files to send" });
    await list.getByRole("button", { name: "Remove notes.svg" }).waitFor();
    await list.getByRole("progressbar").waitFor({ state: "detached" });
    await form.getByRole("textbox", { name: "Message" }).fill("Look at these.");
    expect(await seriousFindings(page)).toEqual([]);
    await form.getByRole("button", { name: "Send" }).click();
    await page.locator(".transcript-row").getByText("Look at these.").first().waitFor();
    await expect.poll(() => pictureWidth(page, "stripes.png")).toBe(64);
    expect(await list.count()).toBe(0);
    await page.reload();
    await expect.poll(() => pictureWidth(page, "stripes.png")).toBe(64);
    // An SVG could contain scripts, so it is only offered for saving.
    const file = page.getByRole("button", { name: /notes.svg/ });
    const [download] = await Promise.all([page.waitForEvent("download"), file.click()]);
    expect(download.suggestedFilename()).toBe("notes.svg");
  },
);
