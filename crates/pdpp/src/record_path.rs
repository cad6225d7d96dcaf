//! Paths and URLs of records. A key can be any string, so it is encoded here such that it cannot become another path.

use fetchwell_core::handle::{RecordAddress, StreamName};
use fetchwell_core::record::{Hit, HitId};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::params::Params;
use super::provider::ProviderUrl;

const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns `/v1/streams/{stream}/records/{record}`, with each name as one segment.
pub(crate) fn record_path(address: &RecordAddress) -> String {
    let encode = |name| utf8_percent_encode(name, SEGMENT);
    format!("/v1/streams/{}/records/{}", encode(address.stream.as_str()), encode(address.record.as_str()))
}

/// Sets the URL of the record of a hit on its record server, with the connection: others may have the same key.
pub fn add_record_url(hit: &mut Hit, provider: &ProviderUrl) {
    let HitId::Record(address) = &hit.id else { return };
    let Ok(mut url) = provider.endpoint(&record_path(address)) else { return };
    let params = Params::default().connection(address.connection.as_ref());
    if !params.is_empty() {
        url.query_pairs_mut().extend_pairs(params.pairs());
    }
    hit.record_url = Some(url.into());
}

/// Returns the path `/v1/streams/{stream}/{what}`.
pub(crate) fn stream_path(stream: &StreamName, what: &str) -> String {
    format!("/v1/streams/{}/{what}", utf8_percent_encode(stream.as_str(), SEGMENT))
}

/// Returns the path of a record for a server that decodes the path twice, as the reference server does.
pub(crate) fn encoded_twice(address: &RecordAddress) -> String {
    let once = |name| utf8_percent_encode(name, SEGMENT).to_string();
    let (stream, record) = (once(address.stream.as_str()), once(address.record.as_str()));
    format!(
        "/v1/streams/{}/records/{}",
        utf8_percent_encode(&stream, SEGMENT),
        utf8_percent_encode(&record, SEGMENT)
    )
}

#[cfg(test)]
mod tests {
    use percent_encoding::percent_decode_str;
    use proptest::prelude::*;
    use url::Url;

    use super::*;
    use fetchwell_core::handle::Handle;

    fn address(stream: &str, record: &str) -> Option<RecordAddress> {
        Some(RecordAddress { connection: None, stream: stream.parse().ok()?, record: record.parse().ok()? })
    }

    fn segments(path: &str) -> Vec<String> {
        let url = Url::parse(&format!("https://rs.example{path}")).unwrap();
        assert_eq!(url.query(), None);
        assert_eq!(url.fragment(), None);
        url.path_segments().unwrap().map(str::to_owned).collect()
    }

    #[test]
    fn keys_are_one_segment() {
        let key = address("labels", "[Gmail]/All Mail?a#b").unwrap();
        assert_eq!(record_path(&key), "/v1/streams/labels/records/%5BGmail%5D%2FAll%20Mail%3Fa%23b");
        let percent = address("s", "100%25").unwrap();
        assert_eq!(record_path(&percent), "/v1/streams/s/records/100%2525");
        assert_eq!(encoded_twice(&percent), "/v1/streams/s/records/100%252525");
    }

    proptest! {
        #[test]
        fn no_name_makes_a_path_of_more_or_fewer_segments(
            stream in "\\PC{1,12}|[./\\\\%2eE]{1,6}",
            record in prop_oneof!["[./\\\\%2eEa]{1,8}", any::<String>()],
        ) {
            if let Some(address) = address(&stream, &record) {
                for (path, times) in [(record_path(&address), 1), (encoded_twice(&address), 2)] {
                    let segments = segments(&path);
                    prop_assert_eq!(segments.len(), 5);
                    let mut last = segments[4].clone();
                    for _ in 0..times {
                        last = percent_decode_str(&last).decode_utf8().unwrap().into_owned();
                    }
                    prop_assert_eq!(&last, &record);
                }
            }
        }

        #[test]
        fn no_accepted_handle_makes_a_path_of_more_or_fewer_segments(text in "[a-z./%:2EeFf~\\\\ ]{1,16}") {
            if let Ok(handle) = text.parse::<Handle>() {
                prop_assert_eq!(segments(&record_path(handle.address())).len(), 5, "{}", text);
            }
        }
    }
}
