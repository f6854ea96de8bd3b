// An app that uses the TypeScript client that openapi-generator makes. Tests/contract/generated.py compiles and runs it.
import { Configuration, NotificationsApi, Priority, ResponseError } from "./client/index";

declare const process: { env: { [name: string]: string } };

const { URL: basePath, BACKEND: backend, USER_TOKEN: user } = process.env;
const notificationDraft = {
  userId: "generated", category: "system", priority: Priority.High, title: "From TypeScript", message: "Hello",
};

function notifications(accessToken: string): NotificationsApi {
  return new NotificationsApi(new Configuration({ basePath, accessToken }));
}

async function refusal(): Promise<[number, string]> {
  try {
    await notifications(user).postNotification({ notificationDraft });
  } catch (error) {
    if (error instanceof ResponseError) return [error.response.status, (await error.response.json()).code];
    throw error;
  }
  return [0, "none"];
}

const { notification } = await notifications(backend).postNotification({ notificationDraft });
const page = await notifications(user).listNotifications();
const created: boolean = page.items.some((item) => item.id === notification?.id && item.title === "From TypeScript");
console.log(JSON.stringify({ created, refused: await refusal() }));
