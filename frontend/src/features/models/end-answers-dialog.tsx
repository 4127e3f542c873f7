import { Button } from "@/ui/button";
import { Dialog, DialogContent } from "@/ui/dialog";

type Props = {
  /** How many answers would be lost; 0 when it isn't known. */
  count: number;
  /** What is busy, in the server's words. */
  message: string;
  /** "End them and unload". */
  action: string;
  onEnd: () => void;
  onKeep: () => void;
};

/** Asks before answers that somebody waits for are ended. The focus is on leaving them alone. */
export function EndAnswersDialog({ count, message, action, onEnd, onKeep }: Props) {
  return (
    <Dialog open onOpenChange={(isOpen) => isOpen || onKeep()}>
      <DialogContent
        title={titleOf(count)}
        description={message}
        footer={
          <>
            <Button intent="secondary" onClick={onKeep}>
              Let {count === 1 ? "it" : "them"} finish
            </Button>
            <Button intent="danger" onClick={onEnd}>
              {action}
            </Button>
          </>
        }
      >
        <p className="text-muted-foreground text-sm">
          What an answer has brought so far is kept in its conversation; the rest of it is lost.
        </p>
      </DialogContent>
    </Dialog>
  );
}

function titleOf(count: number): string {
  if (count === 0) return "Answers are under way; end them?";
  return count === 1
    ? "1 answer is under way; end it?"
    : `${count} answers are under way; end them?`;
}
