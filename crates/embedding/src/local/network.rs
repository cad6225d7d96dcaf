//! The network of a local model, with its tokenizer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use rten::{Model, NodeId, ValueOrView};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, Tensor};

use super::folder::{ModelFolder, Pooling};
use super::structure::check_structure;
use super::tokens::Tokens;
use crate::EmbeddingError;

/// Number of texts that a network computes at once.
pub(super) const BATCH: usize = 8;

/// The pieces of a text, or of a query and a passage.
#[derive(Debug)]
pub(super) struct Pieces {
    ids: Vec<i32>,
    /// Number of ids of the text, or of the query.
    first: usize,
}

impl Pieces {
    /// Splits a text.
    pub(super) fn from_text(tokens: &Tokens, text: &str) -> Self {
        let ids = tokens.ids(text);
        Self { first: ids.len(), ids }
    }

    /// Splits a query and a passage.
    pub(super) fn from_pair(tokens: &Tokens, query: &str, passage: &str) -> Self {
        let (ids, first) = tokens.pair(query, passage);
        Self { ids, first }
    }
}

/// The network of a model with its tokenizer.
pub(super) struct Network {
    folder: ModelFolder,
    pub(super) tokens: Tokens,
    model: Model,
    inputs: Vec<(NodeId, Input)>,
    output: NodeId,
}

/// An input of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Ids,
    Mask,
    Types,
}

impl Network {
    pub(super) fn open(folder: ModelFolder) -> Result<Self, EmbeddingError> {
        let tokens = Tokens::open(&folder)?;
        let invalid = |problem: String| EmbeddingError::InvalidModel { file: folder.onnx.clone(), problem };
        // A damaged file must not end the process, nor keep it busy for ever.
        check_structure(&folder.onnx).map_err(invalid)?;
        let loaded = catch_unwind(AssertUnwindSafe(|| Model::load_file(&folder.onnx)));
        let loaded = loaded.map_err(|_panic| invalid("it is damaged".to_owned()))?;
        let model = loaded.map_err(|error| invalid(error.to_string()))?;
        let mut inputs = Vec::new();
        for id in model.input_ids() {
            let name =
                model.node_info(*id).and_then(|info| info.name().map(str::to_owned)).unwrap_or_default();
            let input = match name.as_str() {
                "input_ids" => Input::Ids,
                "attention_mask" => Input::Mask,
                "token_type_ids" => Input::Types,
                _ => return Err(invalid(format!("it has an input `{name}`, which text models do not have"))),
            };
            inputs.push((*id, input));
        }
        if !inputs.iter().any(|(_, input)| *input == Input::Ids) {
            return Err(invalid("it has no input `input_ids`".to_owned()));
        }
        let output = model.find_node("sentence_embedding").or_else(|| model.output_ids().first().copied());
        let output = output.ok_or_else(|| invalid("it has no output".to_owned()))?;
        Ok(Self { folder, tokens, model, inputs, output })
    }

    pub(super) fn folder_path(&self) -> &Path {
        &self.folder.path
    }

    pub(super) fn place(&self) -> String {
        format!("the model in {}", self.folder.path.display())
    }

    pub(super) fn failed(&self, problem: impl Into<String>) -> EmbeddingError {
        EmbeddingError::Failed { folder: self.folder.path.clone(), problem: problem.into() }
    }

    /// Computes a vector for each item.
    pub(super) fn compute(&self, items: &[Pieces]) -> Result<Vec<Vec<f32>>, EmbeddingError> {
        let mut vectors = Vec::with_capacity(items.len());
        for batch in items.chunks(BATCH) {
            let computed = catch_unwind(AssertUnwindSafe(|| self.run(batch)));
            let computed = computed.map_err(|_panic| self.failed("it stopped with an internal error"))?;
            vectors.extend(computed.map_err(|problem| self.failed(problem))?);
        }
        Ok(vectors)
    }

    /// Computes the vectors of a batch. Shorter texts are padded and masked.
    fn run(&self, batch: &[Pieces]) -> Result<Vec<Vec<f32>>, String> {
        let width = batch.iter().map(|pieces| pieces.ids.len()).max().unwrap_or(0).max(1);
        let padded = |number: fn(&Pieces, usize) -> i32| -> NdTensor<i32, 2> {
            let numbers = batch.iter().flat_map(|pieces| {
                let length = pieces.ids.len();
                (0..length).map(move |at| number(pieces, at)).chain(std::iter::repeat_n(0, width - length))
            });
            NdTensor::from_data([batch.len(), width], numbers.collect::<Vec<i32>>())
        };
        let inputs = self.inputs.iter().map(|(id, input)| {
            let tensor = match input {
                Input::Ids => padded(|pieces, at| pieces.ids.get(at).copied().unwrap_or_default()),
                Input::Mask => padded(|_pieces, _at| 1),
                Input::Types => padded(|pieces, at| i32::from(at >= pieces.first)),
            };
            (*id, ValueOrView::from(tensor))
        });
        let [output] =
            self.model.run_n(inputs.collect(), [self.output], None).map_err(|error| error.to_string())?;
        let output: Tensor<f32> = output.into_tensor().ok_or("its output has no numbers")?;
        let shape = output.shape().to_vec();
        let numbers = output.to_vec();
        match shape.as_slice() {
            [rows, dimensions] if *rows == batch.len() && *dimensions > 0 => {
                Ok(numbers.chunks_exact(*dimensions).map(<[f32]>::to_vec).collect())
            }
            [rows, pieces, dimensions] if *rows == batch.len() && *pieces == width && *dimensions > 0 => {
                let texts = numbers.chunks_exact(width * dimensions).zip(batch);
                Ok(texts.map(|(text, pieces)| self.pooled(text, pieces.ids.len(), *dimensions)).collect())
            }
            other => Err(format!("its output has the shape {other:?}")),
        }
    }

    /// Makes one vector from those of the first `count` pieces.
    fn pooled(&self, pieces: &[f32], count: usize, dimensions: usize) -> Vec<f32> {
        let mut rows = pieces.chunks_exact(dimensions).take(count);
        let mut sum = rows.next().map(<[f32]>::to_vec).unwrap_or_default();
        // The vector is scaled to length 1 afterwards, so the sum does for the mean.
        if self.folder.pooling == Pooling::Mean {
            for row in rows {
                sum.iter_mut().zip(row).for_each(|(sum, number)| *sum += number);
            }
        }
        sum
    }
}
