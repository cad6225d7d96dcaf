//! Mail as programs write it: wrong headers, alternatives, invitations, and parts that only another program can read
//! (fixtures/samples/mail).

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::import::commands::Workshop;
use crate::import::values::record;
use crate::support::{stderr, text};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/samples/mail").join(name)
}

/// Imports a sample. Returns the fields of the message with this id.
#[track_caller]
fn import(workshop: &Workshop, name: &str, id: &str) -> Value {
    assert_eq!(workshop.counts(&["eml", text(&sample(name))]), [1, 0, 0, 0, 0], "{name}");
    record(workshop, &format!("{id}@harbour.test")).0
}

/// Checks that a search finds a message alone.
#[track_caller]
fn check_found(workshop: &Workshop, query: &str, id: &str) {
    assert_eq!(workshop.search(query), [format!("c/messages:{id}@harbour.test")], "{query}");
}

#[test]
fn separators_without_a_sender_or_a_date_are_read() {
    let workshop = Workshop::new();
    assert_eq!(workshop.counts(&["mbox", text(&sample("separators.mbox"))]), [3, 0, 0, 0, 0]);
    for (word, id) in [("quokka", "old-1"), ("numbat", "old-2"), ("bilby", "old-3")] {
        check_found(&workshop, word, id);
    }
    // A paragraph is no separator.
    let (data, _) = record(&workshop, "old-1@harbour.test");
    assert_eq!(data["body"], "A quokka waits on pier one.\n\nFrom Berlin\nTo: Oslo");
    // A folder knows such a mailbox by its content.
    let workshop = Workshop::new();
    workshop.file("box/Archive", std::fs::read(sample("separators.mbox")).unwrap());
    let folder = Path::new(&workshop.store()).with_file_name("box");
    assert_eq!(workshop.counts(&["files", text(&folder)]), [3, 0, 0, 0, 0]);
    let wrong = workshop.file("wrong.mbox", "From Berlin to Oslo\n\nby ship\n");
    let refused = stderr(&workshop.import(&["mbox", &wrong]));
    assert!(
        refused.contains("does not start with `From ` and a date, and no header follows it"),
        "{refused}"
    );
}

#[test]
fn bodies_are_those_that_a_reader_sees() {
    let workshop = Workshop::new();
    let data = import(&workshop, "charset.eml", "charset");
    assert_eq!(
        (&data["subject"], &data["from.name"]),
        (&json!("Größe ohne Kodierung"), &json!("Zoë Müller"))
    );
    assert_eq!(data["body"], "Die Größe der Tür beträgt zwölf Ellen.");
    check_found(&workshop, "zwölf", "charset");

    let data = import(&workshop, "stub.eml", "stub");
    assert_eq!(data["body"], "Order ZX-4471 ships on 12 March.\n\nphoto of the parcel");
    check_found(&workshop, "ZX-4471", "stub");
    for hidden in ["wombat", "\"needs an HTML viewer\""] {
        assert_eq!(workshop.search(hidden), Vec::<String>::new(), "{hidden}");
    }

    let data = import(&workshop, "flowed.eml", "flowed");
    assert_eq!(
        data["body"],
        "The potoroo sleeps until high water, and then it crosses the third bridge.\n\n> Does the potoroo sleep until \
         high water?\n>> Ask Bo.\n\n-- \nBo Li\nHarbour office"
    );
    check_found(&workshop, "\"until high water, and then it crosses the third bridge\"", "flowed");
}

#[test]
fn invitations_are_readable_events() {
    let workshop = Workshop::new();
    let data = import(&workshop, "invitation.eml", "invitation");
    assert_eq!(
        data["body"],
        "Please join.\n\nInvitation: Roadmap review\nStart: 2024-03-08T14:00:00Z\nEnd: 2024-03-08T15:00:00Z\nPlace: Room \
         Kingfisher\nOrganizer: Ann Berg <ann@harbour.test>\n\nBring the quarterly numbers, please"
    );
    // The attached copy is the same event.
    assert_eq!((&data["attachments"], data.get("attached_text")), (&json!(["invite.ics"]), None));
    check_found(&workshop, "\"Room Kingfisher\"", "invitation");
    assert_eq!(workshop.search("VCALENDAR"), Vec::<String>::new());
}

#[test]
fn signed_mail_is_read_and_encrypted_mail_is_named() {
    let workshop = Workshop::new();
    let data = import(&workshop, "signed.eml", "signed");
    assert_eq!(
        (&data["body"], &data["attachments"]),
        (&json!("A dunnart signs with both paws."), &json!(["smime.p7m"]))
    );
    check_found(&workshop, "dunnart", "signed");
    let data = import(&workshop, "encrypted.eml", "sealed");
    assert!(data["body"].as_str().unwrap().starts_with("[Encrypted with S/MIME. "), "{data}");
    check_found(&workshop, "\"Encrypted with S/MIME\"", "sealed");
}
