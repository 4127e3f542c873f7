import { useReachableModel } from "@/api/models";
import { Button } from "@/ui/button";
import type { Asked } from "./asking";
import { useChatStore } from "./chat-store";

const openings = [
  "Explain how rainbows form, in three sentences",
  "Write a Python function that finds prime numbers",
  "Compare tea and coffee in a table",
  "Give me five names for a quiet café",
];

/** A new chat, before its first message. */
export function Welcome({ asked }: { asked: Asked | null }) {
  const model = useReachableModel();
  const send = (text: string) => {
    if (asked) void useChatStore.getState().send({ text, images: [] }, asked);
  };
  return (
    <div className="flex min-h-0 flex-1 flex-col items-center justify-center gap-8 overflow-y-auto p-6 text-center">
      <div className="space-y-2">
        <p className="text-balance font-semibold text-2xl tracking-tight">What's on your mind?</p>
        <p className="text-muted-foreground text-sm [overflow-wrap:anywhere]">
          {model
            ? `${model.name} answers from this machine. Nothing you write leaves it.`
            : "Models run on this machine. Nothing you write leaves it."}
        </p>
      </div>
      <ul aria-label="Ideas" className="grid w-full max-w-2xl gap-2 sm:grid-cols-2">
        {openings.map((opening) => (
          <li key={opening}>
            <Button
              intent="secondary"
              className="h-auto min-h-12 w-full whitespace-normal py-2.5 text-left font-normal"
              disabled={asked === null}
              onClick={() => send(opening)}
            >
              <span className="w-full">{opening}</span>
            </Button>
          </li>
        ))}
      </ul>
    </div>
  );
}
