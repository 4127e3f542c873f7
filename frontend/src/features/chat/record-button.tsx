import { Check, Mic, X } from "lucide-react";
import { IconButton } from "@/ui/icon-button";
import { Spinner } from "@/ui/spinner";
import { canRecord, LONGEST_SECONDS, useRecorder } from "./use-recorder";

type Props = {
  /** What becomes of a recording, for the button's hint. */
  hint: string;
  /** What was recorded before is still being written down. */
  isBusy: boolean;
  onRecorded: (sound: File) => void;
};

/** Records the microphone, and tells its time and how loud it is. */
export function RecordButton({ hint, isBusy, onRecorded }: Props) {
  const { seconds, level, start, finish, discard } = useRecorder(onRecorded);
  if (!canRecord()) return null;
  if (isBusy)
    return (
      <span role="status" className="flex size-10 items-center justify-center">
        <Spinner />
        <span className="sr-only">Writing down what was said</span>
      </span>
    );
  if (seconds === null)
    return (
      <IconButton label="Record" hint={hint} side="top" onClick={() => void start()}>
        <Mic aria-hidden />
      </IconButton>
    );
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for form fields
    <div role="group" aria-label="Recording" className="flex items-center">
      <span
        aria-hidden
        className="mx-1 size-3 rounded-full bg-bad"
        style={{ transform: `scale(${0.6 + level})` }}
      />
      <span role="timer" aria-label="Recorded" className="min-w-10 text-sm tabular-nums">
        {clockOf(seconds)}
      </span>
      <IconButton
        label="Use the recording"
        hint={`Use the recording; it ends by itself after ${LONGEST_SECONDS / 60} minutes`}
        side="top"
        onClick={finish}
      >
        <Check aria-hidden />
      </IconButton>
      <IconButton label="Discard the recording" side="top" onClick={discard}>
        <X aria-hidden />
      </IconButton>
    </div>
  );
}

function clockOf(seconds: number): string {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}
